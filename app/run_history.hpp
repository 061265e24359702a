// Totals of a run over all its starts: the sum of the lines of its metrics.jsonl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// Mean loss and accuracies of one evaluation.
struct Evaluation {
  std::int64_t step = 0;          ///< training steps done before it
  double loss = 0.0;              ///< nats per valid token, summed over sinks
  double accuracy = 0.0;          ///< next token, over all valid tokens
  double content_accuracy = 0.0;  ///< over the tokens of content words
};

/// "loss 4.2034, next token 12.1%, content words 8.0%".
std::string Describe(const Evaluation& evaluation);

struct RunHistory {
  std::int64_t steps = 0;  ///< trained
  double seconds = 0.0;    ///< of those steps
  double tokens = 0.0;     ///< read by those steps; 0: not known
  double samples = 0.0;    ///< likewise

  /// Adds a line of metrics.jsonl. Ignores a malformed line, such as the end of a truncated file.
  void Add(const std::string& line);
};

/// Returns one line about a run of `steps` steps that has ended: steps done, time and speed.
std::string SummaryOf(const RunHistory& run, std::int64_t steps);

}  // namespace troupe
