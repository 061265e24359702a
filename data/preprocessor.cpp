#include "data/preprocessor.hpp"

#include <stdexcept>
#include <vector>

#include "data/image_preprocessor.hpp"

namespace troupe {

static std::vector<PreprocessorMaker>& Makers() {
  static std::vector<PreprocessorMaker> makers = {&MakeImagePreprocessor};
  return makers;
}

std::unique_ptr<const Preprocessor> MakePreprocessor(const Field& field) {
  for (const PreprocessorMaker make : Makers()) {
    if (auto preprocessor = make(field)) return preprocessor;
  }
  throw std::logic_error("field \"" + std::string(field.word()) +
                         "\": no preprocessor in data/preprocessor.cpp knows its type");
}

void AddPreprocessor(PreprocessorMaker maker) { Makers().push_back(maker); }

}  // namespace troupe
