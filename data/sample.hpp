// One row of a data set as the language model sees it.
//
//   <bos> human text \n  answer <eos> human text \n  answer <eos> ...
//
// Every placeholder in the text becomes rows_per_image copies of its encoder's placeholder token;
// the encoder's rows replace their embeddings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "data/llava.hpp"
#include "data/tokenizer.hpp"

namespace troupe {

inline constexpr std::int64_t kNoLabel = -100;

/// What turns rows into samples.
struct SampleFormat {
  const Tokenizer* tokenizer = nullptr;
  std::vector<InputConfig> encoders;         ///< in the order of the config file
  std::vector<std::int64_t> rows_per_image;  ///< by encoder
  std::int64_t context = 0;                  ///< tokens a sample may have
};

/// T tokens.
struct Sample {
  std::vector<std::int64_t> tokens;   ///< [T]
  std::vector<std::int64_t> labels;   ///< [T]: the next token where that is part of an answer (its
                                      ///< eos included), else kNoLabel
  std::vector<std::uint8_t> content;  ///< [T]: the label is part of a content word
  std::vector<std::vector<std::int64_t>> positions;  ///< by encoder: where its rows go, in order
  std::int64_t num_uncut_tokens = 0;  ///< before its end was cut off to fit the context
  const LlavaRow* row = nullptr;      ///< where it comes from; null for an empty sample

  std::int64_t num_labels() const;  ///< labels that are not kNoLabel
  bool cut() const { return num_uncut_tokens > std::ssize(tokens); }
};

/// Text beyond the context is cut off; throws FaultError when part of an image would be. `row` must
/// outlive the sample.
Sample BuildSample(const LlavaSet& set, const LlavaRow& row, const SampleFormat& format);

/// A sample that only fills a place: one pad token, no image, no label.
Sample EmptySample(const SampleFormat& format);

}  // namespace troupe
