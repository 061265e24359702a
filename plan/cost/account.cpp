#include "plan/cost/account.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

Breakdown PassesOf(const JobPlan& plan, const JobCost& cost, int stage) {
  const bool split = plan.schedule().rules[At(stage)].splits_backward;
  Breakdown sum;
  for (const TimedPass& timed : cost.passes.stages[At(stage)]) {
    const PassKind kind = timed.pass.kind;
    const PassCost& pass = cost.stages[At(stage)].Of(timed.pass.unit);
    if (kind == PassKind::kForward) sum += pass.forward;
    if (kind == PassKind::kBackward) sum += pass.inputs;
    if (kind == PassKind::kWeight || (kind == PassKind::kBackward && !split)) sum += pass.weights;
  }
  return sum;
}

std::vector<AccountLine> AccountOf(const JobPlan& plan, const JobCost& cost) {
  // By device of the schedule. All plans have those of the sink, so that they can be compared.
  std::map<int, double> busy;
  const ModuleConfig& sink = plan.config().Sink();
  for (const StagePlan& stage : plan.stages()) {
    if (plan.ModuleOf(stage.module).config->name != sink.name) continue;
    for (const int device : plan.schedule().DevicesOf(stage.stage)) busy[device] = 0.0;
  }
  for (const StagePlan& stage : plan.stages()) {
    const double seconds = PassesOf(plan, cost, stage.stage).total();
    for (const int device : plan.schedule().DevicesOf(stage.stage)) {
      if (const auto of_sink = busy.find(device); of_sink != busy.end()) of_sink->second += seconds;
    }
  }
  const auto busiest =
      std::ranges::max_element(busy, {}, [](const auto& entry) { return entry.second; });
  std::vector<AccountLine> lines;
  double known_s = 0.0;
  const auto add = [&](const std::string& what, double seconds) {
    if (seconds <= 0.0) return;
    const auto same = std::ranges::find(lines, what, &AccountLine::what);
    if (same == lines.end()) {
      lines.push_back({what, seconds});
    } else {
      same->seconds += seconds;
    }
    known_s += seconds;
  };
  for (const StagePlan& stage : plan.stages()) {
    const auto devices = plan.schedule().DevicesOf(stage.stage);
    if (std::ranges::find(devices, busiest->first) == devices.end()) continue;
    const Breakdown passes = PassesOf(plan, cost, stage.stage);
    for (std::size_t spent = 0; spent < kNumSpent; ++spent) {
      add(plan.ModuleOf(stage.module).config->name + ": " + kSpentWords[spent],
          passes[static_cast<Spent>(spent)]);
    }
  }
  add("waiting", cost.passes_s - known_s);
  add("gradients summed", cost.summed_s - cost.passes_s);
  add("optimizer", cost.updated_s - cost.summed_s);
  add("parameters gathered", cost.gathered_s - cost.updated_s);
  add("other", cost.step_s - cost.gathered_s);
  return lines;
}

}  // namespace troupe
