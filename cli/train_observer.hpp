// Turns what the Director tells into lines, metrics.jsonl and the final weights.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "actors/director_actor.hpp"
#include "cli/progress.hpp"
#include "cli/run_directory.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Mean loss and accuracies of one evaluation.
struct Evaluation {
  double loss = 0.0;              ///< nats per valid token
  double accuracy = 0.0;          ///< next token, over all valid tokens
  double content_accuracy = 0.0;  ///< over the tokens of content words
};

class TrainObserver : public JobObserver {
 public:
  TrainObserver(const Config& config, const RunDirectory& directory, int num_ranks, bool terminal);

  void OnRound(const RoundResult& result) override;
  void OnWarning(const std::string& line) override;
  void OnFinished(const std::vector<TensorPiece>& pieces) override;

  /// Ends the bar and prints what the run came to.
  void Summarize();
  /// Ends the bar, and says which of the run's files are good although the run failed.
  void Interrupted();

 private:
  void OnStep(const RoundResult& result);
  void OnEvaluation(const RoundResult& result);
  void WriteMetrics(const std::string& line);

  const Config& config_;
  const RunDirectory& directory_;
  int num_ranks_;
  Progress progress_;
  std::ofstream metrics_;
  std::optional<StepMetrics> first_step_;
  StepMetrics last_step_;
  double training_seconds_ = 0.0;
  std::optional<Evaluation> first_evaluation_;
  Evaluation last_evaluation_;
  std::size_t num_tensors_ = 0;
};

}  // namespace troupe
