// Writes the results that the Director reports: console lines, metrics.jsonl and the final weights.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "actors/job_course.hpp"
#include "app/progress.hpp"
#include "app/run_directory.hpp"
#include "app/tensorboard_log.hpp"
#include "configs/config.hpp"
#include "data/row_source.hpp"
#include "files/output_file.hpp"
#include "modules/device/backend.hpp"

namespace troupe {

class TrainObserver : public JobObserver {
 public:
  /// `steps_done`: before this start. `source`: null for synthetic modules.
  TrainObserver(const Config& config, const RunDirectory& directory, std::int64_t steps_done,
                int num_ranks, bool terminal, std::shared_ptr<const RowSource> source = nullptr);

  void OnRound(const RoundResult& result) override;
  void OnSlow(std::int64_t step, const SlowProcess& slow) override;
  void OnWarning(const std::string& line) override;
  void OnFinished(const std::vector<TensorPiece>& pieces, const FetchPiece& fetch) override;

  /// Call if the data have changed since earlier starts: the files that these replaced do not count.
  void ForgetReplaced() { history_.replaced.clear(); }
  /// Ends the bar and prints a summary of the run over all its starts.
  void Summarize();
  /// Ends the line of the bar.
  void EndBar() { progress_.Finish(); }
  /// Ends the bar and prints which files of a failed run are complete.
  void Interrupted();

 private:
  void OnStep(const RoundResult& result);
  void OnEvaluation(const RoundResult& result);
  void WriteMetrics(const nlohmann::ordered_json& line);
  /// Adds the skipped samples and replaced items of the round to its line of metrics. Warns of each
  /// item once; throws if there are more than data.skip_limit.
  void CountFaults(const RoundResult& result, nlohmann::ordered_json& line);

  const Config& config_;
  const RunDirectory& directory_;
  int num_ranks_;
  const std::shared_ptr<const RowSource> source_;
  std::shared_ptr<MemoryMeter> memory_ = MakeMemoryMeter(config_);
  Progress progress_;
  RunHistory history_;  ///< before `metrics_`, whose initializer fills it with the kept lines
  OutputFile metrics_;
  std::optional<TensorBoardLog> tensorboard_;
  std::size_t num_tensors_ = 0;
};

}  // namespace troupe
