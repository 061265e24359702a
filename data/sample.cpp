#include "data/sample.hpp"

#include <algorithm>

#include "data/content_words.hpp"

namespace troupe {
namespace {

/// Collects tokens together with what is known about each as a label.
class SampleWriter {
 public:
  explicit SampleWriter(const SampleFormat& format) : format_(format) {
    sample_.positions.resize(format.encoders.size());
    Add(format.tokenizer->bos(), false, false);
  }

  void AddTurn(const Turn& turn) {
    const std::string text = turn.answer ? turn.text : turn.text + "\n";
    for (const TextPiece& piece : SplitAtPlaceholders(text, format_.encoders)) {
      if (piece.encoder < 0) {
        AddText(piece.text, turn.answer);
      } else {
        AddImage(static_cast<std::size_t>(piece.encoder));
      }
    }
    if (turn.answer) Add(format_.tokenizer->eos(), true, false);
  }

  /// The labels follow from the tokens that are left: the last one has no next token.
  Sample Finish() && {
    const std::size_t num_kept =
        std::min(sample_.tokens.size(), static_cast<std::size_t>(format_.context));
    sample_.num_uncut_tokens = std::ssize(sample_.tokens);
    sample_.tokens.resize(num_kept);
    sample_.labels.assign(num_kept, kNoLabel);
    sample_.content.assign(num_kept, 0);
    for (std::size_t t = 0; t + 1 < num_kept; ++t) {
      if (!answer_[t + 1]) continue;
      sample_.labels[t] = sample_.tokens[t + 1];
      sample_.content[t] = content_[t + 1];
    }
    return std::move(sample_);
  }

  /// Tokens up to and with the last row of an image.
  std::int64_t num_tokens_to_last_image() const { return last_image_end_; }

 private:
  void AddText(std::string_view text, bool answer) {
    const std::vector<std::uint8_t> content = ContentBytes(text);
    for (const TextToken& token : format_.tokenizer->Encode(text)) {
      const auto begin = content.begin() + static_cast<std::ptrdiff_t>(token.begin);
      const auto end = content.begin() + static_cast<std::ptrdiff_t>(token.end);
      Add(token.id, answer, answer && std::find(begin, end, 1) != end);
    }
  }

  void AddImage(std::size_t encoder) {
    const std::int64_t id = format_.tokenizer->placeholder(static_cast<int>(encoder));
    for (std::int64_t row = 0; row < format_.rows_per_image[encoder]; ++row) {
      sample_.positions[encoder].push_back(std::ssize(sample_.tokens));
      Add(id, false, false);
    }
    last_image_end_ = std::ssize(sample_.tokens);
  }

  void Add(std::int64_t id, bool answer, bool content) {
    sample_.tokens.push_back(id);
    answer_.push_back(answer);
    content_.push_back(content);
  }

  const SampleFormat& format_;
  Sample sample_;
  std::vector<std::uint8_t> answer_;
  std::vector<std::uint8_t> content_;
  std::int64_t last_image_end_ = 0;
};

}  // namespace

std::int64_t Sample::num_labels() const {
  return std::count_if(labels.begin(), labels.end(), [](auto label) { return label != kNoLabel; });
}

Sample BuildSample(const LlavaSet& set, const LlavaRow& row, const SampleFormat& format) {
  SampleWriter writer(format);
  for (const Turn& turn : row.turns) writer.AddTurn(turn);
  if (writer.num_tokens_to_last_image() > format.context) {
    throw FaultError(set.file, {FaultKind::kContext, row.index, row.id,
                                "the context of " + std::to_string(format.context) +
                                    " tokens would cut an image, its last row is token " +
                                    std::to_string(writer.num_tokens_to_last_image()),
                                row.line});
  }
  Sample sample = std::move(writer).Finish();
  sample.row = &row;
  return sample;
}

Sample EmptySample(const SampleFormat& format) {
  return {.tokens = {format.tokenizer->pad()},
          .labels = {kNoLabel},
          .content = {0},
          .positions = std::vector<std::vector<std::int64_t>>(format.encoders.size())};
}

}  // namespace troupe
