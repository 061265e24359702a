// The numbers of a run as TensorBoard shows them, by step and time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/job_course.hpp"
#include "app/event_file.hpp"
#include "app/progress.hpp"
#include "configs/config.hpp"
#include "data/row_source.hpp"
#include "plan/utilisation.hpp"

namespace troupe {

inline constexpr const char* kTensorBoardFolder = "tensorboard";

/// Returns the scalars of a training step: train/loss, with several sinks train/loss_MODULE;
/// learning_rate/, gradient_norm/ (before clipping) and mfu/ of every module and projector, the
/// latter two also as all; speed/; memory/ in bytes.
std::vector<Scalar> ScalarsOfStep(const Config& config, const RoundResult& result,
                                  const StepMetrics& metrics, const Utilisation& utilisation);

/// Returns the scalars of an evaluation: held_out/loss, held_out/accuracy,
/// held_out/content_accuracy.
std::vector<Scalar> ScalarsOfEvaluation(const RoundResult& result);

class TensorBoardLog {
 public:
  /// Writes to `folder`. `resumed_after`: steps before this start. `source`: null for synthetic
  /// modules, whose operations are not counted.
  TensorBoardLog(const Config& config, std::string folder, std::int64_t resumed_after,
                 std::shared_ptr<const RowSource> source);

  void OnStep(const RoundResult& result, const StepMetrics& metrics);
  void OnEvaluation(const RoundResult& result);

 private:
  const Config& config_;
  const std::shared_ptr<const RowSource> source_;
  EventFile file_;
};

}  // namespace troupe
