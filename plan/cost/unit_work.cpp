#include "plan/cost/unit_work.hpp"

#include "plan/stage_work.hpp"
#include "plan/step_order.hpp"

namespace troupe {

std::vector<StepShape> WorkOfUnit(const JobPlan& plan, const PlacedSamples& samples, int module,
                                  int dp, std::int64_t unit) {
  const Config& config = plan.config();
  const ModuleConfig& own = *plan.ModuleOf(module).config;
  const UnitSamples held = SamplesOfUnit(config, own, dp, config.schedule.microbatches, unit);
  const std::int64_t first = held.first_microbatch * plan.samples_per_microbatch();
  std::vector<StepShape> of_unit;
  for (const Interval& numbers : held.samples) {
    for (std::int64_t number = numbers.begin; number < numbers.end; ++number) {
      const auto& here = samples.at(static_cast<std::size_t>(first + number));
      of_unit.insert(of_unit.end(), here.begin(), here.end());
    }
  }
  if (own.model->text() && !PadsRows(config, own)) return ByLength(of_unit);
  StepShape sum;
  for (const StepShape& sample : of_unit) AddSamples(sample, sum);
  return {sum};
}

PlacedSamples InOrder(const Config& config, const PlacedSamples& samples) {
  if (config.data.order != DataOrder::kBalanced) return samples;
  const StepOrder step_order(config);
  std::vector<SampleTimes> times;
  for (const auto& place : samples) {
    times.push_back(step_order.TimesOf({}));
    for (const StepShape& sample : place) times.back() += step_order.TimesOf(sample);
  }
  PlacedSamples ordered;
  for (const std::int64_t sample : step_order.Order(times, config.schedule.microbatches)) {
    ordered.push_back(samples.at(static_cast<std::size_t>(sample)));
  }
  return ordered;
}

std::vector<double> FilledParts(const JobPlan& plan, const PlacedSamples& samples) {
  const Config& config = plan.config();
  std::vector<StepShape> all;
  for (const auto& place : samples) all.insert(all.end(), place.begin(), place.end());
  std::vector<double> parts;
  for (const ModulePlan& module : plan.modules()) {
    const ModuleConfig& own = *module.config;
    const StepShape most = FullSamples(config, own, std::ssize(samples));
    const bool text = own.model->text().has_value();
    std::int64_t own_size = 0;
    for (const StepShape& sample : all) {
      const auto length = sample.lengths.find(own.name);
      own_size += text ? sample.tokens : length == sample.lengths.end() ? 0 : length->second;
    }
    const std::int64_t most_size = text ? most.samples * most.tokens : most.lengths.at(own.name);
    parts.push_back(most_size > 0 ? static_cast<double>(own_size) / static_cast<double>(most_size)
                                  : 0.0);
  }
  return parts;
}

}  // namespace troupe
