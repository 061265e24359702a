#include "plan/cost/stage_price.hpp"

#include <algorithm>

namespace troupe {
namespace {

void AddTimes(double times, const PassCost& cost, PassCost& sum) {
  PassCost part = cost;
  for (Breakdown* pass : {&part.forward, &part.inputs, &part.weights}) *pass *= times;
  part.hidden_s *= times;
  sum += part;
}

}  // namespace

StagePrice::StagePrice(const Config& config, const DeviceModel& device, std::string module, int pp)
    : config_(config), device_(device), module_(std::move(module)), pp_(pp) {
  linear_ =
      FindModule(config, module_).layout.cp == 1 && !CopiesActivations(config, device, module_, pp);
  const auto cost_of = [&](const StepShape& shape) {
    return CostOfStage(config_, device_, module_, pp_, shape);
  };
  none_ = cost_of({});
  if (!linear_) return;
  const auto beyond_none = [&](const StepShape& shape) {
    PassCost cost = cost_of(shape);
    AddTimes(-1.0, none_, cost);
    return cost;
  };
  // A sample of t tokens has t rows and t (t + 1) / 2 pairs.
  const PassCost of_one = beyond_none({.samples = 1, .tokens = 1});
  const PassCost of_three = beyond_none({.samples = 1, .tokens = 3});
  AddTimes(1.0 / 3.0, of_three, pair_);
  AddTimes(-1.0, of_one, pair_);
  AddTimes(1.0, of_one, row_);
  AddTimes(-1.0, pair_, row_);
  label_ = beyond_none({.labels = 1});
  for (const ModuleConfig& encoder : config.modules) {
    const std::int64_t length = encoder.model->most_length();
    if (!encoder.model->field() || length < 1) continue;
    PassCost each;
    AddTimes(1.0 / static_cast<double>(length), beyond_none({.lengths = {{encoder.name, length}}}),
             each);
    items_.emplace_back(encoder.name, each);
  }
}

PassCost StagePrice::Of(const std::vector<StepShape>& shapes) const {
  PassCost cost = none_;
  if (!linear_) {
    for (const StepShape& shape : shapes) {
      AddTimes(1.0, CostOfStage(config_, device_, module_, pp_, shape), cost);
      AddTimes(-1.0, none_, cost);
    }
    return cost;
  }
  for (const StepShape& shape : shapes) {
    const auto samples = static_cast<double>(shape.samples);
    const auto tokens = static_cast<double>(shape.tokens);
    AddTimes(samples * tokens, row_, cost);
    AddTimes(samples * tokens * (tokens + 1.0) / 2.0, pair_, cost);
    AddTimes(static_cast<double>(shape.labels), label_, cost);
    for (const auto& [encoder, item] : items_) {
      const auto length = shape.lengths.find(encoder);
      if (length == shape.lengths.end()) continue;
      AddTimes(static_cast<double>(length->second), item, cost);
    }
  }
  return cost;
}

}  // namespace troupe
