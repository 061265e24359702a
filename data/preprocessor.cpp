#include "data/preprocessor.hpp"

#include <stdexcept>
#include <vector>

namespace troupe {
namespace {

class ImagePreprocessor final : public Preprocessor {
 public:
  explicit ImagePreprocessor(const ImageField& field) : field_(field) {}

  std::int64_t LengthOf(const std::string& file) const override {
    return field_.recipe().has_tiles() ? 1 + GridOf(field_, ReadUprightSize(file)).num_tiles() : 1;
  }
  ItemPlaces PlacesOf(const std::string& file, const ModelConfig& encoder) const override {
    if (!field_.recipe().has_tiles()) return Preprocessor::PlacesOf(file, encoder);
    const PixelSize size = ReadUprightSize(file);
    return PlacesOfTiles(size, GridOf(field_, size), encoder.tile_side());
  }
  void Read(const std::string& file, std::span<float> output) const override {
    ToPixels(ReadImage(file), field_, output);
  }
  const char* ZerosName() const override { return "the mean colour"; }
  std::optional<ImageFacts> Check(const std::string& file, bool decode) const override {
    return CheckImage(file, decode);
  }

 private:
  ImageField field_;
};

std::unique_ptr<const Preprocessor> MakeImagePreprocessor(const Field& field) {
  const auto* const images = dynamic_cast<const ImageField*>(&field);
  return images == nullptr ? nullptr : std::make_unique<ImagePreprocessor>(*images);
}

std::vector<PreprocessorMaker>& Makers() {
  static std::vector<PreprocessorMaker> makers = {&MakeImagePreprocessor};
  return makers;
}

}  // namespace

ItemPlaces Preprocessor::PlacesOf(const std::string& file, const ModelConfig& encoder) const {
  const std::int64_t length = LengthOf(file);
  return PlacesInOrder(length, encoder.RowsOf(length));
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
