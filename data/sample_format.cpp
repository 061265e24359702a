#include "data/sample_format.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace troupe {
namespace {

ItemFormat ItemsOf(const Field& field) {
  return {nullptr, MakePreprocessor(field), field.row_shape()};
}

/// Two language models share one text, cut to the shorter context, so that a round has one number
/// of valid tokens.
std::int64_t ContextOf(const Config& config, const OwnedFormat& owned) {
  std::int64_t context = std::numeric_limits<std::int64_t>::max();
  for (const ModuleConfig& module : config.modules) {
    const std::optional<TextInput> text = module.model->text();
    if (!text) continue;
    context = std::min(context, text->context);
    if (text->vocab >= owned.tokenizer->size()) continue;
    throw DataError("modules." + module.name + ".vocab: expected at least " +
                    std::to_string(owned.tokenizer->size()) + " for tokenizer \"" +
                    config.data.tokenizer + "\" with " +
                    std::to_string(owned.format.fields.size()) + " placeholders, got " +
                    std::to_string(text->vocab));
  }
  return context;
}

}  // namespace

std::vector<const ModuleConfig*> DataEncoders(const Config& config) {
  std::vector<const ModuleConfig*> encoders;
  for (const ModuleConfig& module : config.modules) {
    if (module.model->field() && module.input) encoders.push_back(&module);
  }
  return encoders;
}

OwnedFormat FormatOf(const Config& config) {
  OwnedFormat owned;
  for (const ModuleConfig* encoder : DataEncoders(config)) {
    const std::unique_ptr<const Field> field = encoder->model->field();
    owned.format.fields.push_back({*encoder->input, std::string(field->word())});
    ItemFormat& items = owned.format.items.emplace_back(ItemsOf(*field));
    items.num_rows = [model = encoder->model, files = items.preprocessor](const std::string& file) {
      return model->RowsOf(files->LengthOf(file));
    };
  }
  try {
    const int num_encoders = static_cast<int>(owned.format.fields.size());
    owned.tokenizer = MakeTokenizer(config.data.tokenizer, num_encoders);
  } catch (const std::runtime_error& error) {
    throw DataError(error.what());  // an unreadable tokenizer file is also a data error
  }
  owned.format.tokenizer = owned.tokenizer.get();
  owned.format.context = ContextOf(config, owned);
  return owned;
}

OwnedFormat PlainFormat() {
  OwnedFormat owned;
  owned.format.fields.emplace_back();
  owned.format.items.push_back(ItemsOf(ImageField(1, {})));
  owned.format.items[0].num_rows = [](const std::string&) { return 0; };
  owned.tokenizer = MakeTokenizer("bytes", 1);
  owned.format.tokenizer = owned.tokenizer.get();
  owned.format.context = std::numeric_limits<std::int64_t>::max();
  return owned;
}

}  // namespace troupe
