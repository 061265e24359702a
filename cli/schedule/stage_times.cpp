#include "cli/schedule/stage_times.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/run_directory.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"
#include "layout/at.hpp"
#include "plan/cost/job_cost.hpp"
#include "trace/analyze/link_time.hpp"
#include "trace/analyze/median.hpp"
#include "trace/run_trace.hpp"

namespace troupe {
namespace {

constexpr double kFlopsPerSecond = 10e9;

/// "language has 2 stages there, 4 here"; `before` and `after` stand around the first number.
std::string Differs(const std::string& module, const char* before, const char* after,
                    std::int64_t there, std::int64_t here) {
  if (there == here) return "";
  return module + " has " + before + std::to_string(there) + after + " there, " +
         std::to_string(here) + " here";
}

/// Samples of a replica of `module` in one microbatch.
std::int64_t SamplesOf(const Config& config, const ModuleConfig& module) {
  return config.samples_per_microbatch() / module.layout.dp;
}

std::string WhyOtherTimes(const Config& run, const ModuleConfig& there, const Config& wanted,
                          const ModuleConfig& here) {
  const std::string& name = here.name;
  std::string why = Differs(name, "tp ", "", there.layout.tp, here.layout.tp);
  if (why.empty()) why = Differs(name, "cp ", "", there.layout.cp, here.layout.cp);
  if (why.empty()) why = Differs(name, "", " stages", there.num_stages(), here.num_stages());
  if (why.empty()) {
    why = Differs(name, "", " samples per replica and microbatch", SamplesOf(run, there),
                  SamplesOf(wanted, here));
  }
  if (!why.empty()) return why;
  if (&there.model.kind() != &here.model.kind()) return name + " is of another kind there";
  if (here.model->computes() && there.model != here.model) {
    return name + " has other sizes there";
  }
  if (there.layers_per_stage != here.layers_per_stage) {
    return name + " has other layers_per_stage there";
  }
  if (there.frozen != here.frozen)
    return name + (here.frozen ? " trains" : " is frozen") + " there";
  return there.inline_in != here.inline_in ? name + " runs elsewhere there" : "";
}

/// Why passes of `wanted` take other times than those of `run`: "language has tp 2 there, 4 here".
/// Empty if nothing differs that affects a pass. Replicas, microbatches per step, the kind of the
/// schedule and stated durations may differ: measured times were requested.
std::string WhyOtherTimes(const Config& run, const Config& wanted) {
  for (const ModuleConfig& here : wanted.modules) {
    const ModuleConfig* const there = run.Find(here.name);
    if (there == nullptr) return "it has no module " + here.name;
    const std::string why = WhyOtherTimes(run, *there, wanted, here);
    if (!why.empty()) return why;
  }
  return "";
}

std::int64_t Ns(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }

std::int64_t MedianIfAny(std::vector<std::int64_t> samples) {
  return samples.empty() ? -1 : Median(std::move(samples));
}

/// Durations are known by module and stage number only, which may match in another model.
void RequireSameModel(const Candidate& candidate, const std::string& run_directory) {
  const std::string path = ResolvedFile(run_directory);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;  // a trace without its run
  const std::string why = WhyOtherTimes(LoadConfig(path).config, candidate.plan->config());
  if (why.empty()) return;
  throw LayoutError(run_directory + ": its passes are of another model: " + why);
}

/// Returns the number that `text` begins with, -1 if there is none, and the text after it.
std::pair<double, std::string> NumberAndRest(const std::string& text) {
  try {
    std::size_t read = 0;
    const double number = std::stod(text, &read);
    return {number, text.substr(read)};
  } catch (const std::exception&) {
    return {-1.0, ""};
  }
}

/// "2x" of `before`, "300us", "1.5ms", "2s"; -1 for anything else.
std::int64_t Changed(const std::string& text, std::int64_t before) {
  const std::map<std::string, double> units = {
      {"x", static_cast<double>(before)}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  const auto [number, unit_text] = NumberAndRest(text);
  const auto unit = units.find(unit_text);
  if (!(number >= 0.0 && number <= 1e9) || unit == units.end()) return -1;
  return static_cast<std::int64_t>(number * unit->second);
}

StageTimes TimesFromRun(const Candidate& candidate, const std::string& run_directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_directory, ignored)) {
    throw LaunchError("--durations: expected a run directory, got " + Quoted(run_directory));
  }
  RequireSameModel(candidate, run_directory);
  const RunTrace trace = ReadRunTrace(run_directory);
  std::map<StageId, std::map<WorkKind, std::vector<std::int64_t>>> samples;
  std::set<std::int64_t> training;  // evaluations run shorter forwards
  for (const TraceWork& work : trace.work) {
    if (work.pass.kind == WorkKind::kBackward) training.insert(work.pass.round);
  }
  for (const TraceWork& work : trace.work) {
    const PassRecord& pass = work.pass;
    if (training.count(pass.round) == 0) continue;
    samples[trace.stages.at(At(pass.stage))][pass.kind].push_back(pass.end_ns - pass.begin_ns);
  }
  StageTimes times{"medians of " + run_directory, {}, {}};
  bool guessed = false;
  const StageGraph& graph = candidate.plan->graph();
  for (int stage = 0; stage < static_cast<int>(graph.stages().size()); ++stage) {
    auto& found = samples[graph.IdOf(stage)];
    const std::int64_t forward = MedianIfAny(found[WorkKind::kForward]);
    const bool backs = candidate.plan->stages()[At(stage)].runs_backward;
    if (forward < 0 || (backs && found[WorkKind::kBackward].empty())) {
      throw LayoutError(run_directory + ": expected training passes of " + graph.StageName(stage) +
                        ", got none; a schedule with other stages needs a separate run");
    }
    const std::int64_t backward = Median(found[WorkKind::kBackward]);
    guessed = guessed || (found[WorkKind::kWeight].empty() &&
                          candidate.plan->schedule().rules[At(stage)].splits_backward);
    const std::int64_t weight = MedianIfAny(found[WorkKind::kWeight]);
    times.stages.push_back(weight < 0 ? StagePassTimes{forward, backward, backward / 2}
                                      : StagePassTimes{forward, backward + weight, weight});
  }
  if (guessed) times.source += ", the weights' part taken as half of a backward";
  for (const StageLink& link : graph.links()) {
    times.link_ns.push_back(
        LinkTime(trace, graph.IdOf(link.from), graph.IdOf(link.to)).value_or(0));
  }
  return times;
}

PassDuration DurationOf(const StageTimes& times, const Schedule& schedule) {
  std::vector<bool> split;
  for (const StageRule& rule : schedule.rules) split.push_back(rule.splits_backward);
  return [stages = times.stages, split](int stage, const Pass& pass) {
    const StagePassTimes& time = stages.at(At(stage));
    if (pass.kind == PassKind::kForward) return time.forward_ns;
    if (pass.kind == PassKind::kWeight) return time.weight_ns;
    return time.backward_ns - (split[At(stage)] ? time.weight_ns : 0);
  };
}

}  // namespace

Simulation Simulate(const Candidate& candidate, const StageTimes& times) {
  Schedule schedule = candidate.plan->schedule();
  schedule.link_ns = times.link_ns;
  return Simulate(candidate.plan->graph(), schedule, DurationOf(times, schedule),
                  candidate.microbatches());
}

WorkTime WorkTimeOf(const StageTimes& times, const Schedule& schedule) {
  return [of = DurationOf(times, schedule)](WorkKind kind, int stage, std::int64_t unit) {
    if (kind == WorkKind::kForward) return of(stage, {PassKind::kForward, unit});
    if (kind == WorkKind::kBackward) return of(stage, {PassKind::kBackward, unit});
    if (kind == WorkKind::kWeight) return of(stage, {PassKind::kWeight, unit});
    return std::int64_t{0};
  };
}

StageTimes TimesOf(const Candidate& candidate) {
  const JobPlan& plan = *candidate.plan;
  StageTimes times{"as stated", {}, {}};
  for (const ModulePlan& module : plan.modules()) {
    if (!module.config->model->computes()) continue;
    times.source = "from the number of multiplications at 10 GFLOP/s per rank";
  }
  for (const PassCost& cost : StageCosts(plan, DeviceOfFlops(kFlopsPerSecond))) {
    times.stages.push_back(
        {Ns(cost.forward.total()), Ns(cost.backward_s()), Ns(cost.weights.total())});
  }
  return times;
}

StageTimes TimesFor(const Candidate& candidate, const std::string& run_directory,
                    const std::vector<std::string>& scales) {
  StageTimes times =
      run_directory.empty() ? TimesOf(candidate) : TimesFromRun(candidate, run_directory);
  Scale(times, candidate, scales);
  return times;
}

void ChangeEdges(StageTimes& times, const Candidate& candidate,
                 const std::vector<std::string>& changes) {
  const JobPlan& plan = *candidate.plan;
  for (const std::string& change : changes) {
    const auto equals = change.rfind('=');
    const auto arrow = change.find("->");
    const bool formed = change.rfind("edge:", 0) == 0 && arrow != std::string::npos &&
                        equals != std::string::npos && arrow < equals;
    const auto refuse = [&](const std::string& why) {
      throw LayoutError("--what-if " + change + ": " + why);
    };
    const char* const expected = "expected edge:FROM->TO=2x, =300us, =1.5ms or =2s";
    if (!formed) refuse(expected);
    const std::string from = change.substr(5, arrow - 5);
    const std::string to = change.substr(arrow + 2, equals - arrow - 2);
    const bool measured = !times.link_ns.empty();
    if (!measured) times.link_ns.resize(plan.graph().links().size());
    bool known = false;
    for (std::size_t l = 0; l < plan.graph().links().size(); ++l) {
      const int edge = plan.graph().links()[l].edge;
      if (edge < 0 || plan.edges()[At(edge)].name != from + ">" + to) continue;
      known = true;
      const std::int64_t ns = Changed(change.substr(equals + 1), times.link_ns[l]);
      if (ns < 0) refuse(expected);
      if (!measured && change.back() == 'x') {
        refuse("the time of the edge is known from --durations RUN only; or give a time, =300us");
      }
      times.link_ns[l] = ns;
    }
    if (!known) refuse("there is no edge from \"" + from + "\" to \"" + to + "\"");
    times.source += ", " + change;
  }
}

void Scale(StageTimes& times, const Candidate& candidate, const std::vector<std::string>& scales) {
  for (const std::string& scale : scales) {
    const auto equals = scale.find('=');
    const std::string name = scale.substr(0, equals);
    const auto [factor, rest] =
        NumberAndRest(equals == std::string::npos ? "" : scale.substr(equals + 1));
    if (!(factor >= 0.0 && factor <= 1e6) || !rest.empty()) {
      throw LayoutError("--scale " + scale + ": expected MODULE=FACTOR, as in vision=0.5");
    }
    bool known = false;
    for (const StagePlan& stage : candidate.plan->stages()) {
      if (candidate.plan->ModuleOf(stage.module).config->name != name) continue;
      known = true;
      StagePassTimes& time = times.stages[At(stage.stage)];
      for (std::int64_t* ns : {&time.forward_ns, &time.backward_ns, &time.weight_ns}) {
        *ns = static_cast<std::int64_t>(std::llround(static_cast<double>(*ns) * factor));
      }
    }
    if (!known) throw LayoutError("--scale " + scale + ": there is no module \"" + name + "\"");
    times.source += ", " + scale;
  }
}

}  // namespace troupe
