#include "app/tensorboard_log.hpp"

#include <utility>

#include "modules/learning_rate.hpp"
#include "plan/optimizer_settings.hpp"

namespace troupe {
namespace {

void AddMemory(const StepMetrics& metrics, std::vector<Scalar>& scalars) {
  const auto add = [&scalars](const char* tag, std::int64_t bytes) {
    scalars.push_back({std::string("memory/") + tag, static_cast<double>(bytes)});
  };
  add("resident_bytes", metrics.memory_bytes);
  if (!metrics.gpu) return;
  add("gpu_in_use_bytes", metrics.gpu->in_use_bytes);
  add("gpu_peak_bytes", metrics.gpu->peak_bytes);
  add("gpu_reserved_bytes", metrics.gpu->reserved_bytes);
}

}  // namespace

std::vector<Scalar> ScalarsOfStep(const Config& config, const RoundResult& result,
                                  const StepMetrics& metrics, const Utilisation& utilisation) {
  std::vector<Scalar> scalars = {{"train/loss", result.objective()}};
  if (result.sinks.size() > 1) {
    for (const SinkLoss& sink : result.sinks) {
      scalars.push_back({"train/loss_" + sink.module, sink.mean()});
    }
  }
  const double factor = ScheduleFactor(config.optimizer, result.round.step, config.run.steps);
  for (const std::string& part : TrainedParts(config)) {
    scalars.push_back({"learning_rate/" + part, SettingsOf(config, part).RateAt(factor)});
  }
  scalars.push_back({"gradient_norm/all", result.gradient_norm});
  for (const auto& [part, norm] : result.gradient_norms) {
    scalars.push_back({"gradient_norm/" + part, norm});
  }
  scalars.push_back({"speed/tokens_per_second", metrics.tokens_per_second});
  scalars.push_back({"speed/samples_per_second", metrics.samples_per_second});
  scalars.push_back({"speed/bubble", metrics.bubble});
  if (!utilisation.parts.empty()) scalars.push_back({"mfu/all", utilisation.mfu});
  for (const PartUtilisation& part : utilisation.parts) {
    scalars.push_back({"mfu/" + part.name, part.mfu});
  }
  AddMemory(metrics, scalars);
  return scalars;
}

std::vector<Scalar> ScalarsOfEvaluation(const RoundResult& result) {
  return {{"held_out/loss", result.objective()},
          {"held_out/accuracy", result.loss.accuracy()},
          {"held_out/content_accuracy", result.loss.content_accuracy()}};
}

TensorBoardLog::TensorBoardLog(const Config& config, std::string folder, std::int64_t resumed_after,
                               std::shared_ptr<const RowSource> source)
    : config_(config), source_(std::move(source)), file_(std::move(folder), resumed_after) {}

void TensorBoardLog::OnStep(const RoundResult& result, const StepMetrics& metrics) {
  Utilisation utilisation;
  if (source_ != nullptr && config_.cluster.peak_tflops) {
    utilisation = UtilisationOf(config_, source_->ShapesOf(result.round), result.seconds);
  }
  file_.Write(result.round.step + 1, ScalarsOfStep(config_, result, metrics, utilisation));
}

void TensorBoardLog::OnEvaluation(const RoundResult& result) {
  file_.Write(result.round.step, ScalarsOfEvaluation(result));
}

}  // namespace troupe
