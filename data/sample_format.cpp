#include "data/sample_format.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace troupe {
namespace {

/// Two language models share one text, so that the valid tokens of a round are one number: the
/// shorter context cuts for both.
std::int64_t ContextOf(const Config& config, const OwnedFormat& owned) {
  std::int64_t context = std::numeric_limits<std::int64_t>::max();
  for (const ModuleConfig& module : config.modules) {
    if (module.kind != ModuleKind::kLlama) continue;
    context = std::min(context, module.llama.context);
    if (module.llama.vocab >= owned.tokenizer->size()) continue;
    throw DataError("modules." + module.name + ".vocab: expected at least " +
                    std::to_string(owned.tokenizer->size()) + " for tokenizer \"" +
                    config.data.tokenizer + "\" with " +
                    std::to_string(owned.format.encoders.size()) + " placeholders, got " +
                    std::to_string(module.llama.vocab));
  }
  return context;
}

}  // namespace

std::vector<const ModuleConfig*> DataEncoders(const Config& config) {
  std::vector<const ModuleConfig*> encoders;
  for (const ModuleConfig& module : config.modules) {
    if (module.kind == ModuleKind::kVit && module.input) encoders.push_back(&module);
  }
  return encoders;
}

OwnedFormat FormatOf(const Config& config) {
  OwnedFormat owned;
  for (const ModuleConfig* encoder : DataEncoders(config)) {
    owned.format.encoders.push_back(*encoder->input);
    owned.format.rows_per_image.push_back(encoder->vit.rows_per_image());
  }
  try {
    const int num_encoders = static_cast<int>(owned.format.encoders.size());
    owned.tokenizer = MakeTokenizer(config.data.tokenizer, num_encoders);
  } catch (const std::runtime_error& error) {
    throw DataError(error.what());  // a tokenizer's file that cannot be read is bad data, too
  }
  owned.format.tokenizer = owned.tokenizer.get();
  owned.format.context = ContextOf(config, owned);
  return owned;
}

OwnedFormat PlainFormat() {
  OwnedFormat owned;
  owned.format.encoders.push_back(InputConfig{});
  owned.format.rows_per_image.push_back(0);
  owned.tokenizer = MakeTokenizer("bytes", 1);
  owned.format.tokenizer = owned.tokenizer.get();
  owned.format.context = std::numeric_limits<std::int64_t>::max();
  return owned;
}

}  // namespace troupe
