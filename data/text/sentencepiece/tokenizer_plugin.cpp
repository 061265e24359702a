// The tokenizer of SentencePiece models, as a library that is opened on demand; data/text/tokenizer.cpp
// has the reason.
#include <sentencepiece_processor.h>
#include <stdexcept>

#include "data/text/tokenizer.hpp"

namespace troupe {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& file, std::string_view model, int num_encoders,
                         bool pad_last) {
    if (!Load(model)) {
      throw std::runtime_error(file + ": expected a sentencepiece model, could not read it as one");
    }
    if (model_.bos_id() < 0 || model_.eos_id() < 0) {
      throw std::runtime_error(file + ": expected a model with bos and eos, it has no " +
                               (model_.bos_id() < 0 ? "bos" : "eos"));
    }
    const std::int64_t num_pieces = model_.GetPieceSize();
    const bool has_pad = model_.pad_id() >= 0;
    first_placeholder_ = num_pieces + (has_pad || pad_last ? 0 : 1);
    pad_ = has_pad ? model_.pad_id() : pad_last ? num_pieces + num_encoders : num_pieces;
    size_ = num_pieces + num_encoders + (has_pad ? 0 : 1);
  }

  /// The library also throws, for models from which it cannot build its tables.
  bool Load(std::string_view model) {
    try {
      return model_.LoadFromSerializedProto({model.data(), model.size()}).ok();
    } catch (const std::exception&) {
      return false;
    }
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

  std::optional<std::int64_t> bos() const override { return model_.bos_id(); }
  std::int64_t eos() const override { return model_.eos_id(); }
  std::int64_t pad() const override { return pad_; }
  std::int64_t placeholder(int encoder) const override { return first_placeholder_ + encoder; }
  std::int64_t size() const override { return size_; }

 private:
  sentencepiece::SentencePieceProcessor model_;
  std::int64_t pad_ = 0;
  std::int64_t first_placeholder_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace
}  // namespace troupe

/// `file` is the name used in errors, `model` its contents, which ProblemOf
/// (data/text/sentencepiece_model.hpp) has accepted. A model without pad gets one: before the
/// placeholders or, with `pad_last`, after them. Throws like MakeTokenizer. The caller owns the result.
extern "C" const troupe::Tokenizer* TroupeMakeSentencePiece(const char* file, const char* model,
                                                            std::size_t size, int num_encoders,
                                                            bool pad_last) {
  return new troupe::SentencePieceTokenizer(file, {model, size}, num_encoders, pad_last);
}
