#include "plan/cost/unit_work.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/cost/stage_cost.hpp"
#include "plan/stage_work.hpp"
#include "plan/step_order.hpp"

namespace troupe {

AverageWork::AverageWork(const Workload& workload) {
  for (const PlacedSamples& step : workload) {
    places_ += static_cast<double>(step.size());
    for (const auto& place : step) {
      for (const StepShape& sample : place) {
        tokens_.push_back(sample.tokens);
        AddSamples(sample, sum_);
      }
    }
  }
  std::ranges::sort(tokens_);
}

StepShape AverageWork::Of(const Config& config, const ModuleConfig& module,
                          std::int64_t samples) const {
  if (tokens_.empty()) return FullSamples(config, module, samples);
  const double share = static_cast<double>(samples) / places_;
  const auto part_of = [share](std::int64_t sum) {
    return static_cast<std::int64_t>(std::llround(share * static_cast<double>(sum)));
  };
  StepShape shape;
  shape.samples = std::max<std::int64_t>(1, part_of(std::ssize(tokens_)));
  shape.labels = part_of(sum_.labels);
  for (const auto& [name, length] : sum_.lengths) shape.lengths[name] = part_of(length);
  if (!module.model->text()) return shape;
  if (PadsRows(config, module)) {
    // Of n draws the longest is at n / (n + 1) of the sorted samples, in the mean.
    const auto longest =
        tokens_.size() * static_cast<std::size_t>(samples) / static_cast<std::size_t>(samples + 1);
    shape.tokens = tokens_.at(std::min(longest, tokens_.size() - 1));
  } else {
    shape.tokens =
        std::accumulate(tokens_.begin(), tokens_.end(), std::int64_t{0}) / std::ssize(tokens_);
  }
  return shape;
}

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
  std::vector<double> parts;
  for (const ModulePlan& module : plan.modules()) {
    std::int64_t size = 0;
    for (const auto& place : samples) {
      for (const StepShape& sample : place) size += SizeFor(*module.config, sample);
    }
    parts.push_back(FilledPart(plan.config(), *module.config, std::ssize(samples), size));
  }
  return parts;
}

}  // namespace troupe
