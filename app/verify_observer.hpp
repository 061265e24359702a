// Trains the reference concurrently with the run, and compares all tensors after each step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/job_course.hpp"
#include "configs/config.hpp"
#include "data/row_source.hpp"
#include "modules/torch/compare.hpp"
#include "modules/torch/expert_choices.hpp"
#include "modules/torch/reference.hpp"

namespace troupe {

/// The largest allowed difference, relative to each tensor's own maximum. FP64: 1e-10 for
/// everything. FP32: 1e-5 for gradients and first moments, twice that for second moments (squares).
/// Parameters in FP32 get the room that Adam's division needs: a gradient element of pure rounding
/// noise (|g| below 1e-7 of its tensor's maximum) may have either sign, and m / (sqrt(v) + epsilon)
/// is then +1 or -1 whatever its size, so one step may differ by two learning rates there. BF16:
/// 3.5 times the accumulated rounding of a gradient (docs/verify.md), and the same room for
/// parameters.
double ToleranceOf(Precision precision, TensorKind kind);

class VerifyObserver : public JobObserver {
 public:
  VerifyObserver(const Config& config, std::shared_ptr<RowSource> source);

  void OnRound(const RoundResult& result) override;
  void OnGradients(const Round& round, const std::vector<TensorPiece>& pieces) override;
  void OnUpdated(const Round& round, TensorKind kind,
                 const std::vector<TensorPiece>& pieces) override;

  /// All differences beyond tolerance, one line each; empty if the run is correct.
  const std::vector<std::string>& faults() const { return faults_; }
  /// Steps that were compared.
  std::int64_t num_steps() const { return num_steps_; }
  /// Worst difference of each kind over all steps.
  double worst(TensorKind kind) const;
  /// Worst difference of each tensor's gradient in each step.
  const std::vector<double>& gradients() const { return gradients_; }
  /// The choices of experts that were compared. Where some differ, the reference follows the run.
  ExpertChoices::Counts choices() const { return choices_.counts(); }
  /// Makes OnRound print nothing.
  void set_quiet(bool quiet) { quiet_ = quiet; }

 private:
  void Compare(const Round& round, TensorKind kind, const std::vector<TensorPiece>& pieces);

  Config config_;
  std::shared_ptr<RowSource> source_;
  Reference reference_;
  ExpertChoices choices_;
  std::optional<RecordExpertChoices> recording_;
  LossSums reference_loss_;
  double reference_norm_ = 0.0;
  std::map<TensorKind, Comparison> comparisons_;  ///< of the current step
  std::map<TensorKind, double> worst_;
  std::vector<double> gradients_;
  std::int64_t num_steps_ = 0;
  std::vector<std::string> faults_;
  bool quiet_ = false;
};

}  // namespace troupe
