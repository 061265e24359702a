#include "cli/profile/measured_pass.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "layout/text.hpp"
#include "plan/cost/stage_price.hpp"
#include "trace/analyze/median.hpp"

namespace troupe {

std::vector<MeasuredPass> MeasuredPassesOf(const JobPlan& plan, const RunTrace& trace,
                                           const BatchOfRound& batch_of) {
  std::set<std::int64_t> training;  // evaluations run shorter forwards
  std::map<std::pair<int, std::int64_t>, std::int64_t> first_units;  // by stage, round
  for (const TraceWork& work : trace.work) {
    const PassRecord& pass = work.pass;
    if (pass.kind == WorkKind::kUpdate) training.insert(pass.round);
    if (!IsPass(pass.kind)) continue;
    const auto [first, is_new] = first_units.try_emplace({pass.stage, pass.round}, pass.unit);
    if (!is_new) first->second = std::min(first->second, pass.unit);
  }
  using Key = std::tuple<int, int, WorkKind, std::int64_t, std::int64_t>;
  std::map<Key, MeasuredPass> found;
  for (const TraceWork& work : trace.work) {
    const PassRecord& pass = work.pass;
    const bool counts =
        IsPass(pass.kind) || pass.kind == WorkKind::kReduce || pass.kind == WorkKind::kUpdate;
    const std::int64_t batch = counts && training.contains(pass.round) ? batch_of(pass.round) : -1;
    if (batch < 0) continue;
    const std::int64_t unit =
        IsPass(pass.kind) ? pass.unit - first_units.at({pass.stage, pass.round}) : 0;
    MeasuredPass& times = found[Key(pass.stage, pass.dp, pass.kind, batch, unit)];
    times.stage = pass.stage;
    times.dp = pass.dp;
    times.kind = pass.kind;
    times.batch = batch;
    times.unit = unit;
    const double wall_s = 1e-9 * static_cast<double>(pass.end_ns - pass.begin_ns);
    times.wall_s.push_back(wall_s);
    times.core_s.push_back(work.cores.known() && !work.memory.on_gpu()
                               ? 1e-9 * static_cast<double>(work.cores.on_core_ns)
                               : wall_s);
  }
  std::vector<MeasuredPass> all;
  for (auto& [key, times] : found) {
    if (At(times.stage) < plan.stages().size()) all.push_back(std::move(times));
  }
  return all;
}

double UndisturbedTime(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[(values.size() - 1) / 10];
}

double SpreadOf(std::vector<double> values) {
  if (values.size() < 2) return 0.0;
  std::ranges::sort(values);
  const std::size_t quarter = values.size() / 4;
  return 0.5 * (values[values.size() - 1 - quarter] - values[quarter]) / Median(values);
}

std::function<double(const DeviceModel&)> TimeOfPass(const JobPlan& plan,
                                                     const PlacedSamples& samples,
                                                     const MeasuredPass& pass) {
  const StagePlan& stage = plan.stages()[At(pass.stage)];
  const std::string module = plan.ModuleOf(stage.module).config->name;
  const auto work = WorkOfUnit(plan, samples, stage.module, pass.dp, pass.unit);
  return [&plan, module, pp = stage.pp, work, kind = pass.kind](const DeviceModel& device) {
    const PassCost cost = StagePrice(plan.config(), device, module, pp).Of(work);
    return kind == WorkKind::kForward ? cost.forward.total() : cost.backward_s();
  };
}

std::string PassText(const JobPlan& plan, const MeasuredPass& pass) {
  const ModuleConfig& module = *plan.ModuleOf(plan.stages()[At(pass.stage)].module).config;
  const std::int64_t samples = plan.samples_per_microbatch() / module.layout.dp;
  std::string text = pass.kind == WorkKind::kForward ? "forward of " : "backward of ";
  text += plan.graph().StageName(pass.stage);
  if (module.layout.tp > 1) text += " tp " + std::to_string(module.layout.tp);
  return text + ", " + Counted(samples, "sample");
}

std::vector<double> StepsOf(const RunTrace& trace) {
  std::map<std::int64_t, std::int64_t> begins;  // of training rounds
  std::set<std::int64_t> training;
  for (const TraceWork& work : trace.work) {
    if (work.pass.kind == WorkKind::kUpdate) training.insert(work.pass.round);
    if (!IsPass(work.pass.kind)) continue;
    const auto [begin, is_new] = begins.try_emplace(work.pass.round, work.pass.begin_ns);
    begin->second = std::min(begin->second, work.pass.begin_ns);
  }
  std::vector<double> steps;
  for (auto next = begins.begin(); next != begins.end(); ++next) {
    const auto before = begins.find(next->first - 1);
    if (before == begins.end() || !training.contains(before->first)) continue;
    steps.push_back(1e-9 * static_cast<double>(next->second - before->second));
  }
  return steps;
}

}  // namespace troupe
