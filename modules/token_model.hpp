// A language model with its encoders that continues texts, as those who ask it see it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// The rows of an encoder in a prompt.
struct PromptItems {
  std::string encoder;
  FieldItems items;
  std::vector<std::int64_t> positions;  ///< the tokens that its rows replace, in order; -1: none
  std::vector<std::int64_t> newlines;   ///< the tokens that newline rows replace
};

/// What precedes an answer. T tokens, at least one.
struct Prompt {
  std::vector<std::int64_t> tokens;  ///< [T]
  std::vector<PromptItems> items;    ///< of the encoders with items
  std::uint64_t stream = 0;          ///< of the draws of its answer
};

/// Continues several sequences of tokens at once, whose numbers are 0 to n - 1. Logits are float64
/// in host memory, over a vocabulary of V tokens. Used on one thread. All functions throw
/// std::runtime_error if the device fails.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// The most tokens of a sequence.
  virtual std::int64_t context() const = 0;
  /// Begins sequence n. Returns the logits [V] of the token after `prompt`. Throws
  /// std::invalid_argument for a prompt that is longer than the context or does not fit together.
  virtual Buffer Begin(const Prompt& prompt) = 0;
  /// Appends tokens[i] to sequence i, for all n. Returns the logits [n, V] of the tokens after them.
  virtual Buffer Extend(std::span<const std::int64_t> tokens) = 0;
  /// Ends sequence `number`. Sequence n - 1 takes its number.
  virtual void End(std::int64_t number) = 0;
};

}  // namespace troupe
