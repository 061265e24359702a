#include "plan/stage_work.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/layer_split.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {

void ListWork(const Config& config, const StagePart& part, const StepShape& shape, WorkList& work) {
  if (part.newline) return;
  if (!part.is_projector()) {
    const ModuleConfig& module = *part.module;
    module.model->ListWork(PlaceOf(module, part.pp), shape, module.name, work);
    return;
  }
  const EdgeConfig& edge = *part.edge;
  const auto length = shape.lengths.find(edge.from);
  const ModelConfig& from = *FindModule(config, edge.from).model;
  const std::int64_t rows = length == shape.lengths.end() ? 0 : from.RowsOf(length->second);
  ListProjector(ProjectorShapeOf(config, edge), rows, work);
}

StepShape FullSamples(const Config& config, const ModuleConfig& module, std::int64_t samples) {
  StepShape shape;
  shape.samples = samples;
  shape.tokens = module.model->text() ? module.model->text()->context : 0;
  shape.labels = shape.samples * shape.tokens;
  for (const ModuleConfig& encoder : config.modules) {
    const std::int64_t items = shape.samples * MostItemsOfSample(config, encoder);
    shape.lengths[encoder.name] = items * encoder.model->most_length();
  }
  return shape;
}

StepShape MostWorkOfUnit(const Config& config, const ModuleConfig& module) {
  return FullSamples(config, module,
                     MostSamplesOfUnit(config, module, config.schedule.microbatches));
}

void AddSamples(const StepShape& more, StepShape& sum) {
  sum.samples += more.samples;
  sum.tokens = std::max(sum.tokens, more.tokens);
  sum.labels += more.labels;
  for (const auto& [module, length] : more.lengths) sum.lengths[module] += length;
}

std::vector<StepShape> ByLength(const std::vector<StepShape>& samples) {
  std::map<std::int64_t, StepShape> by_length;
  for (const StepShape& sample : samples) AddSamples(sample, by_length[sample.tokens]);
  std::vector<StepShape> shapes;
  for (auto& [length, shape] : by_length) shapes.push_back(std::move(shape));
  return shapes;
}

}  // namespace troupe
