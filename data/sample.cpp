#include "data/sample.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "data/text/chat_template.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 21> kStopWords = {
    "a",   "an", "and", "are", "at",  "by",    "for", "from", "in",   "is",  "it",
    "its", "of", "on",  "or",  "the", "there", "to",  "with", "this", "that"};

bool IsWordByte(char c) {
  // Not std::isalnum: the result must not depend on the locale.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

ItemFormat ItemsOf(const Field& field) {
  return {nullptr, MakePreprocessor(field), field.row_shape()};
}

/// Rows of an embedding are padded to multiples of 64, as LLaVA's are.
std::string NextMultiple(std::int64_t size) { return std::to_string((size + 63) / 64 * 64); }

/// Two language models share one text, cut to the shorter context, so that a round has one number
/// of valid tokens.
std::int64_t ContextOf(const Config& config, const SampleFormat& format) {
  std::int64_t context = std::numeric_limits<std::int64_t>::max();
  for (const ModuleConfig& module : config.modules) {
    const std::optional<TextInput> text = module.model->text();
    if (!text) continue;
    context = std::min(context, text->context);
    if (text->vocab >= format.tokenizer->size()) continue;
    throw DataError("modules." + module.name + ".vocab: expected at least " +
                    std::to_string(format.tokenizer->size()) + " for tokenizer \"" +
                    config.data.tokenizer + "\" with " + std::to_string(format.fields.size()) +
                    " placeholders, got " + std::to_string(text->vocab) +
                    (module.weights ? "; state vocab = " + NextMultiple(format.tokenizer->size()) +
                                          ": the rows of new tokens start as the mean of the others"
                                    : ""));
  }
  return context;
}

/// Collects tokens together with the properties of each as a label.
class SampleWriter {
 public:
  SampleWriter(const RowOrigin& origin, const LlavaRow& row, const SampleFormat& format)
      : origin_(origin), row_(row), format_(format), num_items_(format.fields.size()) {
    sample_.positions.resize(format.fields.size());
    sample_.newlines.resize(format.fields.size());
    sample_.lengths.resize(format.fields.size(), 0);
    if (const auto text = AlwaysLearned(format.prompt)) {
      const std::vector<TextToken> tokens = format.tokenizer->Encode(*text);
      if (tokens.size() == 1) always_learned_ = tokens.front().id;
    }
  }

  void Add(const PromptPart& part) {
    if (part.kind == PromptPart::Kind::kText) return AddText(part);
    FlushText();
    if (part.kind == PromptPart::Kind::kItem) return AddItem(static_cast<std::size_t>(part.field));
    after_special_ = part.kind != PromptPart::Kind::kBos;
    if (const auto id = SpecialId(part)) Add(*id, part.learned, false);
  }

  /// Derives the labels from the tokens that are left. The last token has no next token.
  Sample Finish() && {
    FlushText();
    if (last_item_end_ > format_.context) {
      throw FaultError(origin_.file,
                       row_.Fault(FaultKind::kContext,
                                  "the context of " + std::to_string(format_.context) +
                                      " tokens would cut " + last_field_->WithArticle() +
                                      ", its last row is token " + std::to_string(last_item_end_)));
    }
    const std::size_t num_kept =
        std::min(sample_.tokens.size(), static_cast<std::size_t>(format_.context));
    sample_.num_uncut_tokens = std::ssize(sample_.tokens);
    sample_.tokens.resize(num_kept);
    sample_.labels.assign(num_kept, kNoLabel);
    sample_.content.assign(num_kept, 0);
    for (std::size_t t = 0; t + 1 < num_kept; ++t) {
      if (!learned_[t + 1]) continue;
      sample_.labels[t] = sample_.tokens[t + 1];
      sample_.content[t] = content_[t + 1];
    }
    return std::move(sample_);
  }

 private:
  /// Text that is tokenized as one. A token counts as part of the format or of an answer as its
  /// first byte does.
  struct Text {
    std::string bytes;
    std::vector<std::uint8_t> learned;  ///< by byte
    std::vector<std::uint8_t> content;  ///< by byte: in a content word of an answer
  };

  void AddText(const PromptPart& part) {
    if (part.begins_anew) FlushText();
    text_.bytes += part.text;
    text_.learned.resize(text_.bytes.size(), part.learned ? 1 : 0);
    if (part.answer) {
      const std::vector<std::uint8_t> content = ContentBytes(part.text);
      text_.content.insert(text_.content.end(), content.begin(), content.end());
    }
    text_.content.resize(text_.bytes.size(), 0);
  }

  void FlushText() {
    if (text_.bytes.empty()) return;
    for (const TextToken& token : Tokens(text_.bytes)) {
      const std::size_t first = std::min(token.begin, text_.bytes.size() - 1);
      const auto begin = text_.content.begin() + static_cast<std::ptrdiff_t>(token.begin);
      const auto end = text_.content.begin() + static_cast<std::ptrdiff_t>(token.end);
      const bool learned = text_.learned[first] != 0 || token.id == always_learned_;
      Add(token.id, learned, learned && std::find(begin, end, 1) != end);
    }
    text_ = {};
  }

  std::vector<TextToken> Tokens(const std::string& text) const {
    try {
      return after_special_ ? format_.tokenizer->EncodeAfterSpecial(text)
                            : format_.tokenizer->Encode(text);
    } catch (const std::runtime_error& error) {
      throw FaultError(origin_.file, row_.Fault(FaultKind::kContext, error.what()));
    }
  }

  std::optional<std::int64_t> SpecialId(const PromptPart& part) const {
    if (part.kind == PromptPart::Kind::kBos) return format_.tokenizer->bos();
    if (part.kind == PromptPart::Kind::kEos) return format_.tokenizer->eos();
    return format_.tokenizer->special(part.text);
  }

  void AddItem(std::size_t encoder) {
    const std::int64_t id = format_.tokenizer->placeholder(static_cast<int>(encoder));
    const ItemPlaces places = PlacesOf(encoder, row_.files.at(encoder).at(num_items_[encoder]++));
    const std::int64_t first = std::ssize(sample_.tokens);
    for (const std::int64_t place : places.rows) {
      sample_.positions[encoder].push_back(place < 0 ? place : first + place);
    }
    for (const std::int64_t place : places.newlines) {
      sample_.newlines[encoder].push_back(first + place);
    }
    sample_.lengths[encoder] += places.length;
    for (std::int64_t token = 0; token < places.num_tokens; ++token) Add(id, false, false);
    after_special_ = false;
    last_field_ = &format_.fields[encoder];
    last_item_end_ = std::ssize(sample_.tokens);
  }

  ItemPlaces PlacesOf(std::size_t encoder, const std::string& file) const {
    try {
      return format_.items[encoder].places(row_.ItemOf(origin_, file));
    } catch (const std::exception& error) {  // includes failed allocations of a file's bytes
      throw FaultError(origin_.file, row_.Fault(FaultKind::kItem, error.what()));
    }
  }

  void Add(std::int64_t id, bool learned, bool content) {
    sample_.tokens.push_back(id);
    learned_.push_back(learned);
    content_.push_back(content);
  }

  const RowOrigin& origin_;
  const LlavaRow& row_;
  const SampleFormat& format_;
  std::vector<std::size_t> num_items_;  ///< by encoder: items so far
  Sample sample_;
  std::vector<std::uint8_t> learned_;
  std::vector<std::uint8_t> content_;
  Text text_;                   ///< not tokenized yet
  bool after_special_ = false;  ///< a special token precedes `text_`
  std::optional<std::int64_t> always_learned_;
  const RowField* last_field_ = nullptr;
  std::int64_t last_item_end_ = 0;  ///< tokens up to and including the last row of an item
};

std::vector<PromptPart> PartsOf(const RowOrigin& origin, const LlavaRow& row,
                                const SampleFormat& format) {
  try {
    return PromptParts(format.prompt, row.turns, format.fields);
  } catch (const std::runtime_error& error) {
    throw FaultError(origin.file, row.Fault(FaultKind::kContext, error.what()));
  }
}

/// Returns the format that data.prompt states, or else that of the tokenizer. Throws
/// std::runtime_error if the tokenizer does not have the format's special tokens.
PromptKind PromptFor(const DataConfig& data, const Tokenizer& tokenizer) {
  const std::string folder = HuggingFaceFolder(data.tokenizer);
  const std::optional<PromptKind> stated = PromptOf(data.prompt);
  const PromptKind kind = stated           ? *stated
                          : folder.empty() ? PromptKind::kLines
                                           : PromptOfFolder(folder);
  for (const std::string& token : SpecialTokensOf(kind)) {
    if (tokenizer.special(token)) continue;
    throw std::runtime_error("data.prompt = \"" + std::string(WordOf(kind)) +
                             "\": expected a tokenizer with the special token \"" + token +
                             "\", \"" + data.tokenizer + "\" has none");
  }
  return kind;
}

}  // namespace

std::int64_t Sample::num_labels() const {
  return std::count_if(labels.begin(), labels.end(), [](auto label) { return label != kNoLabel; });
}

Sample BuildSample(const RowOrigin& origin, const LlavaRow& row, const SampleFormat& format) {
  SampleWriter writer(origin, row, format);
  for (const PromptPart& part : PartsOf(origin, row, format)) writer.Add(part);
  return std::move(writer).Finish();
}

Sample EmptySample(const SampleFormat& format) {
  return {.tokens = {format.tokenizer->pad()},
          .labels = {kNoLabel},
          .content = {0},
          .positions = std::vector<std::vector<std::int64_t>>(format.fields.size()),
          .newlines = std::vector<std::vector<std::int64_t>>(format.fields.size()),
          .lengths = std::vector<std::int64_t>(format.fields.size(), 0)};
}

std::vector<const ModuleConfig*> DataEncoders(const Config& config) {
  std::vector<const ModuleConfig*> encoders;
  for (const ModuleConfig& module : config.modules) {
    if (module.model->field() && module.input) encoders.push_back(&module);
  }
  return encoders;
}

SampleFormat FormatOf(const Config& config) {
  SampleFormat format;
  for (const ModuleConfig* encoder : DataEncoders(config)) {
    const std::unique_ptr<const Field> field = encoder->model->field();
    format.fields.push_back({*encoder->input, std::string(field->word())});
    ItemFormat& items = format.items.emplace_back(ItemsOf(*field));
    items.places = [model = encoder->model, files = items.preprocessor](const ItemFile& file) {
      return files->PlacesOf(file, *model);
    };
  }
  try {
    std::vector<std::string> placeholders;
    for (const RowField& field : format.fields) placeholders.push_back(field.placeholder);
    format.tokenizer = MakeTokenizer(config.data.tokenizer, placeholders);
    format.prompt = PromptFor(config.data, *format.tokenizer);
  } catch (const std::runtime_error& error) {
    throw DataError(error.what());  // an unreadable tokenizer file is also a data error
  }
  format.context = ContextOf(config, format);
  return format;
}

SampleFormat PlainFormat() {
  ItemFormat images = ItemsOf(ImageField(1, {}));
  images.places = [](const ItemFile&) { return PlacesInOrder(1, 0); };
  return {.tokenizer = MakeTokenizer("bytes", {RowField().placeholder}),
          .fields = {RowField()},
          .items = {images},
          .context = std::numeric_limits<std::int64_t>::max()};
}

std::vector<std::uint8_t> ContentBytes(std::string_view text) {
  std::vector<std::uint8_t> content(text.size(), 0);
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    if (std::ranges::count(kStopWords, InLowerCase(text.substr(begin, end - begin))) == 0) {
      std::fill(content.begin() + static_cast<std::ptrdiff_t>(begin),
                content.begin() + static_cast<std::ptrdiff_t>(end), std::uint8_t{1});
    }
    begin = std::max(end, begin + 1);
  }
  return content;
}

}  // namespace troupe
