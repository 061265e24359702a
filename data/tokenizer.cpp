#include "data/tokenizer.hpp"

#include <filesystem>
#include <sentencepiece_processor.h>
#include <stdexcept>

namespace troupe {
namespace {

constexpr std::string_view kSentencePiecePrefix = "sentencepiece:";

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(int num_encoders) : num_encoders_(num_encoders) {}

  std::vector<TextToken> Encode(std::string_view text) const override {
    std::vector<TextToken> tokens;
    tokens.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      tokens.push_back({static_cast<unsigned char>(text[i]), i, i + 1});
    }
    return tokens;
  }

  std::string Decode(std::span<const std::int64_t> ids) const override {
    std::string text;
    for (const std::int64_t id : ids) {
      if (id >= 0 && id < kNumBytes) text.push_back(static_cast<char>(id));
    }
    return text;
  }

  std::int64_t bos() const override { return kNumBytes; }
  std::int64_t eos() const override { return kNumBytes + 1; }
  std::int64_t pad() const override { return kNumBytes + 2; }
  std::int64_t placeholder(int encoder) const override { return kNumBytes + 3 + encoder; }
  std::int64_t size() const override { return kNumBytes + 3 + num_encoders_; }

 private:
  static constexpr std::int64_t kNumBytes = 256;
  int num_encoders_;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& file, int num_encoders) : num_encoders_(num_encoders) {
    if (!std::filesystem::is_regular_file(file)) {
      throw std::runtime_error(file + ": expected a sentencepiece model, found no such file");
    }
    const auto status = model_.Load(file);
    if (!status.ok()) {
      throw std::runtime_error(file + ": expected a sentencepiece model, could not read it as one");
    }
    if (model_.bos_id() < 0 || model_.eos_id() < 0) {
      throw std::runtime_error(file + ": expected a model with bos and eos, it has no " +
                               (model_.bos_id() < 0 ? "bos" : "eos"));
    }
    pad_ = model_.pad_id() >= 0 ? model_.pad_id() : model_.GetPieceSize();
    first_placeholder_ = model_.GetPieceSize() + (model_.pad_id() >= 0 ? 0 : 1);
  }

  std::vector<TextToken> Encode(std::string_view text) const override {
    const auto pieces = model_.EncodeAsImmutableProto({text.data(), text.size()});
    std::vector<TextToken> tokens;
    tokens.reserve(pieces.pieces_size());
    for (const auto& piece : pieces.pieces()) {
      tokens.push_back({piece.id(), piece.begin(), piece.end()});
    }
    return tokens;
  }

  std::string Decode(std::span<const std::int64_t> ids) const override {
    std::vector<int> text_ids;
    for (const std::int64_t id : ids) {
      if (id >= 0 && id < model_.GetPieceSize()) text_ids.push_back(static_cast<int>(id));
    }
    return model_.DecodeIds(text_ids);
  }

  std::int64_t bos() const override { return model_.bos_id(); }
  std::int64_t eos() const override { return model_.eos_id(); }
  std::int64_t pad() const override { return pad_; }
  std::int64_t placeholder(int encoder) const override { return first_placeholder_ + encoder; }
  std::int64_t size() const override { return first_placeholder_ + num_encoders_; }

 private:
  sentencepiece::SentencePieceProcessor model_;
  int num_encoders_;
  std::int64_t pad_ = 0;
  std::int64_t first_placeholder_ = 0;
};

}  // namespace

std::unique_ptr<const Tokenizer> MakeTokenizer(const std::string& name, int num_encoders) {
  if (name == "bytes") return std::make_unique<ByteTokenizer>(num_encoders);
  if (name.starts_with(kSentencePiecePrefix)) {
    return std::make_unique<SentencePieceTokenizer>(name.substr(kSentencePiecePrefix.size()),
                                                    num_encoders);
  }
  throw std::runtime_error("tokenizer: expected \"bytes\" or \"sentencepiece:FILE\", got \"" +
                           name + "\"");
}

}  // namespace troupe
