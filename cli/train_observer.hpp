// Turns what the Director tells into lines, metrics.jsonl and the final weights.
#pragma once

#include <functional>
#include <string>

#include "actors/director_actor.hpp"
#include "cli/progress.hpp"
#include "cli/run_directory.hpp"
#include "cli/run_history.hpp"
#include "configs/config.hpp"
#include "files/output_file.hpp"
#include "modules/device/backend.hpp"

namespace troupe {

class TrainObserver : public JobObserver {
 public:
  /// `count_skipped`: samples of a round whose row is skipped; empty where none may be.
  TrainObserver(const Config& config, const RunDirectory& directory, int num_ranks, bool terminal,
                std::function<std::int64_t(const Round&)> count_skipped = {});

  void OnRound(const RoundResult& result) override;
  void OnWarning(const std::string& line) override;
  void OnFinished(const std::vector<TensorPiece>& pieces) override;

  /// Ends the bar and prints what the run came to, over all its starts.
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
  std::function<std::int64_t(const Round&)> count_skipped_;
  std::shared_ptr<MemoryMeter> memory_ = MakeMemoryMeter(config_);
  Progress progress_;
  RunHistory history_;  ///< before `metrics_`, which reads into it what is kept
  OutputFile metrics_;
  std::size_t num_tensors_ = 0;
};

}  // namespace troupe
