#include "app/verify_observer.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "checkpoint/weights_folder.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/optimizer_settings.hpp"

namespace troupe {
namespace {

/// The largest learning rate of any module or projector.
double LargestRate(const Config& config) {
  double rate = 0.0;
  for (const std::string& part : TrainedParts(config)) {
    rate = std::max(rate, SettingsOf(config, part).learning_rate);
  }
  return rate;
}

/// Except in FP64, parameters get an absolute room of two learning rates; see ToleranceOf.
std::vector<std::string> ParameterFaults(const Comparison& comparison, double room) {
  std::vector<std::string> faults =
      Faults({{}, comparison.missing, comparison.extra, comparison.malformed}, 0.0);
  for (const TensorDifference& tensor : comparison.tensors) {
    Comparison one;
    one.tensors.push_back(tensor);
    const double limit = tensor.scale > 0.0 ? room / tensor.scale : 0.0;
    for (auto& fault : Faults(one, limit)) faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace

double ToleranceOf(Precision precision, TensorKind kind) {
  if (precision == Precision::kFloat64) return 1e-10;
  if (kind == TensorKind::kParameter) return 0.0;  // see ParameterFaults
  const double gradient = precision == Precision::kBFloat16 ? 0.15 : 1e-5;
  return kind == TensorKind::kSecondMoment ? 2.0 * gradient : gradient;
}

VerifyObserver::VerifyObserver(const Config& config, std::shared_ptr<RowSource> source)
    : config_(config), source_(std::move(source)), reference_(config) {
  if (std::ranges::any_of(config.modules,
                          [](const ModuleConfig& each) { return each.model->num_experts() > 0; })) {
    recording_.emplace(choices_);
  }
  if (!ReadsWeights(config)) return;
  const std::vector<TensorPiece> whole = reference_.Tensors(TensorKind::kParameter);
  ReadWeights(config, whole);
  reference_.SetParameters(whole);
}

double VerifyObserver::worst(TensorKind kind) const {
  const auto found = worst_.find(kind);
  return found == worst_.end() ? 0.0 : found->second;
}

void VerifyObserver::Compare(const Round& round, TensorKind kind,
                             const std::vector<TensorPiece>& pieces) {
  Comparison comparison = CompareTensors(reference_.Tensors(kind), pieces);
  for (const TensorDifference& tensor : comparison.tensors) {
    worst_[kind] = std::max(worst_[kind], tensor.worst);
    if (kind == TensorKind::kGradient) gradients_.push_back(tensor.worst);
  }
  const bool loose = kind == TensorKind::kParameter && config_.run.precision != Precision::kFloat64;
  const auto faults = loose ? ParameterFaults(comparison, 2.0 * LargestRate(config_))
                            : Faults(comparison, ToleranceOf(config_.run.precision, kind));
  for (const std::string& fault : faults) {
    faults_.push_back("step " + std::to_string(round.step + 1) + ", " + InWords(kind) + ": " +
                      fault);
  }
  comparisons_[kind] = std::move(comparison);
}

void VerifyObserver::OnGradients(const Round& round, const std::vector<TensorPiece>& pieces) {
  comparisons_.clear();
  const std::int64_t differing = choices_.counts().differing;
  reference_loss_ =
      reference_.Step(source_->LoadWhole(round), round.loss_scale, round.step, &choices_);
  choices_.Forget(round.step);
  const std::int64_t more = choices_.counts().differing - differing;
  // With fewer digits, rounding decides between experts that are almost equal.
  if (more > 0 && config_.run.precision == Precision::kFloat64) {
    faults_.push_back("step " + std::to_string(round.step + 1) + ": expected the experts of " +
                      std::to_string(more) + " tokens as the reference chose them, got others");
  }
  reference_norm_ = reference_.gradient_norm();
  Compare(round, TensorKind::kGradient, pieces);
}

void VerifyObserver::OnUpdated(const Round& round, TensorKind kind,
                               const std::vector<TensorPiece>& pieces) {
  Compare(round, kind, pieces);
  // Except in FP64, both sides continue from the same weights: rounding noise that Adam amplifies
  // in one step must not look like a wrong gradient in the next.
  if (kind == TensorKind::kParameter && config_.run.precision != Precision::kFloat64) {
    reference_.SetParameters(pieces);
  }
}

void VerifyObserver::OnRound(const RoundResult& result) {
  ++num_steps_;
  if (reference_loss_.tokens == 0) {
    faults_.push_back("step " + std::to_string(result.round.step + 1) +
                      ": no sample has a label, nothing was compared");
  }
  if (result.loss.tokens != reference_loss_.tokens) {
    faults_.push_back("step " + std::to_string(result.round.step + 1) + ": expected " +
                      std::to_string(reference_loss_.tokens) + " valid tokens, got " +
                      std::to_string(result.loss.tokens));
  }
  if (quiet_) return;
  std::cout << "step " << result.round.step + 1 << "  loss " << result.objective() << " (reference "
            << reference_loss_.loss * result.round.loss_scale << ")  gradient norm "
            << result.gradient_norm << " (reference " << reference_norm_
            << ")\nlargest differences, relative to each tensor's maximum:\n"
            << FormatTable(comparisons_) << '\n'
            << std::flush;
}

}  // namespace troupe
