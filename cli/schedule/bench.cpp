#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <sys/resource.h>

#include "cli/columns.hpp"
#include "cli/schedule/compare.hpp"
#include "cli/schedule/timed_rounds.hpp"
#include "cli/schedule/verbs.hpp"
#include "configs/config_error.hpp"

namespace troupe {
namespace {

struct BenchArguments {
  ConfigArguments config;
  std::vector<std::string> kinds;
  std::vector<std::int64_t> microbatches;
  bool simulate = false;
  bool measure = false;
  bool in_virtual_time = false;
  int reps = 7;
  std::int64_t steps = 1;
  std::string durations;
  std::vector<std::string> scales;
  std::vector<std::string> what_ifs;
  std::string json;
};

/// One kind with one number of microbatches.
struct Entry {
  Candidate candidate;
  SimulatedRow simulated;
  std::vector<double> step_ms;  ///< measured
  std::vector<double> bubbles;  ///< measured
  std::vector<double> errors;   ///< of simulations with each step's own durations
  std::optional<VirtualRow> virtually;

  double step() const { return step_ms.empty() ? simulated.step_ms : MedianOf(step_ms).median; }
  double bubble() const { return bubbles.empty() ? simulated.bubble : MedianOf(bubbles).median; }
};

std::string Format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}
std::string Percent(double share) { return Format("%.1f%%", 100.0 * share); }
/// "4.8% faster than 1f1b: the bubble is 3.2% instead of 8.1%".
std::string Verdict(const Entry& entry, const Entry& baseline) {
  if (&entry == &baseline) return "baseline";
  const double gain = 1.0 - entry.step() / baseline.step();
  const std::string bubbles =
      "the bubble is " + Percent(entry.bubble()) + " instead of " + Percent(baseline.bubble());
  const std::string& other = baseline.candidate.kind;
  if (std::abs(gain) < 0.0005) return "as fast as " + other;
  if (!entry.step_ms.empty() && !baseline.step_ms.empty()) {
    const Interval95 own = MedianOf(entry.step_ms);
    const Interval95 its = MedianOf(baseline.step_ms);
    if (own.low <= its.high && its.low <= own.high) {
      return "no difference from " + other + " beyond the noise";
    }
  }
  const std::string text =
      Percent(std::abs(gain)) + (gain > 0 ? " faster than " : " slower than ") + other;
  // A reason only where it is one.
  const bool explained = (entry.bubble() < baseline.bubble()) == (gain > 0);
  return explained ? text + ": " + bubbles : text + ", though " + bubbles;
}

std::string Peaks(const std::vector<std::int64_t>& peaks) {
  std::string text;
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(peaks.size(), kShown); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(peaks[i]);
  }
  return text + (peaks.size() > kShown ? " .." : "");
}
std::string StepText(const Entry& entry) {
  if (entry.step_ms.empty()) return Format("%.2f", entry.simulated.step_ms);
  const Interval95 step = MedianOf(entry.step_ms);
  return Format("%.2f", step.median) + " [" + Format("%.2f", step.low) + ", " +
         Format("%.2f", step.high) + "]";
}

std::string BubbleText(const Entry& entry) {
  const auto ideal = IdealBubble(entry.candidate);
  return Percent(entry.bubble()) + " / " + (ideal ? Percent(*ideal) : "-");
}

void Print(const std::vector<Entry>& entries, const BenchArguments& arguments) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"kind", "mb", "step ms", "bubble / ideal", "peak by stage"});
  if (arguments.measure) rows.back().push_back("sim error");
  if (arguments.in_virtual_time) rows.back().push_back("virtual step ms");
  rows.back().push_back("verdict");
  const Entry* baseline = nullptr;
  for (const Entry& entry : entries) {
    const bool other =
        baseline != nullptr && baseline->candidate.microbatches() != entry.candidate.microbatches();
    if (baseline == nullptr || other) baseline = &entry;
    auto& row = rows.emplace_back();
    row = {entry.candidate.kind, std::to_string(entry.candidate.microbatches()), StepText(entry),
           BubbleText(entry), Peaks(entry.simulated.peak_activations)};
    if (arguments.measure) row.push_back(Format("%+.1f%%", 100.0 * MedianOf(entry.errors).median));
    if (entry.virtually) {
      row.push_back(
          Format("%.3f", entry.virtually->step_ms) + " (" +
          Format("%+.3f%%", 100.0 * (entry.virtually->step_ms / entry.simulated.step_ms - 1.0)) +
          ")");
    }
    row.push_back(Verdict(entry, *baseline));
  }
  std::printf("%s", Columns(rows).c_str());
}

nlohmann::json JsonOf(const Entry& entry) {
  nlohmann::json json = {{"kind", entry.candidate.kind},
                         {"microbatches", entry.candidate.microbatches()},
                         {"simulated_step_ms", entry.simulated.step_ms},
                         {"simulated_bubble", entry.simulated.bubble},
                         {"peak_activations", entry.simulated.peak_activations},
                         {"measured_step_ms", entry.step_ms},
                         {"measured_bubble", entry.bubbles},
                         {"simulation_error", entry.errors}};
  if (const auto ideal = IdealBubble(entry.candidate)) json["ideal_bubble"] = *ideal;
  if (entry.virtually) {
    json["virtual"] = {{"step_ms", entry.virtually->step_ms},
                       {"messages", entry.virtually->messages},
                       {"actors", entry.virtually->actors},
                       {"wall_seconds", entry.virtually->wall_seconds}};
  }
  return json;
}

/// Synthetic times are stated for the stages of a plain pipeline: virtual stages share them.
Candidate WithSharedTimes(const BenchArguments& arguments, const Candidate& candidate) {
  ConfigArguments shared = arguments.config;
  for (const ModulePlan& module : candidate.plan->modules()) {
    const ModuleConfig& config = *module.config;
    if (config.kind != ModuleKind::kSynthetic || config.chunks == 1) continue;
    const std::string key = "modules." + config.name + ".";
    shared.overrides.push_back(
        key + "forward_ms=" + Format("%.9g", config.synthetic.forward_ms / config.chunks));
    shared.overrides.push_back(
        key + "backward_ms=" + Format("%.9g", config.synthetic.backward_ms / config.chunks));
  }
  return LoadCandidate(shared, candidate.kind, candidate.microbatches());
}

/// One repetition of one kind: a warm-up step and one that counts.
void MeasureOnce(const BenchArguments& arguments, Entry& entry) {
  const Candidate candidate = WithSharedTimes(arguments, entry.candidate);
  const JobPlan& plan = *candidate.plan;
  for (const MeasuredStep& step : RunSteps(candidate.plan, 1)) {
    const double ranks = static_cast<double>(plan.lock_steps().size());
    entry.step_ms.push_back(step.seconds * 1e3);
    entry.bubbles.push_back(1.0 - step.busy_seconds / (step.seconds * ranks));
    const double simulated = SimulateRow(candidate, {"", step.stages}).step_ms;
    entry.errors.push_back(simulated / (step.seconds * 1e3) - 1.0);
  }
}

void PrintCost(const std::vector<Entry>& entries) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  for (const Entry& entry : entries) {
    const VirtualRow& row = *entry.virtually;
    std::printf("%s, %lld microbatches: %zu actors on %d ranks exchanged %llu messages in %.2f s\n",
                entry.candidate.kind.c_str(),
                static_cast<long long>(entry.candidate.microbatches()), row.actors,
                entry.candidate.plan->config().cluster.ranks,
                static_cast<unsigned long long>(row.messages), row.wall_seconds);
  }
  std::printf("peak memory of this process: %.0f MiB\n",
              static_cast<double>(usage.ru_maxrss) / 1024.0);
}

Entry Open(const BenchArguments& arguments, const std::string& kind, std::int64_t microbatches,
           std::string& source) {
  Entry entry{LoadCandidate(arguments.config, kind, microbatches), {}, {}, {}, {}, {}};
  StageTimes times = TimesFor(entry.candidate, arguments.durations, arguments.scales);
  ChangeEdges(times, entry.candidate, arguments.what_ifs);
  source = times.source;
  entry.simulated = SimulateRow(entry.candidate, times);
  if (arguments.in_virtual_time) {
    entry.virtually = RunVirtually(entry.candidate, times, arguments.steps);
  }
  return entry;
}

int Bench(const BenchArguments& arguments) {
  std::vector<Entry> entries;
  std::string source;
  auto counts = arguments.microbatches;
  if (counts.empty()) counts.push_back(0);
  auto kinds = arguments.kinds;
  if (kinds.empty()) kinds.emplace_back();
  std::string refusals;
  for (const std::int64_t count : counts) {
    for (const std::string& kind : kinds) {
      try {
        entries.push_back(Open(arguments, kind, count, source));
      } catch (const ConfigErrors& errors) {
        refusals += (kind.empty() ? "" : kind + ": ") + errors.what() + "\n";
      } catch (const LayoutError& e) {
        refusals += (kind.empty() ? "" : kind + ": ") + e.what() + "\n";
      }
    }
  }
  if (entries.empty()) {
    std::fprintf(stderr, "%s", refusals.c_str());
    return kExitBadInput;
  }
  // One of each in turn, so that what else the machine does meets all of them alike.
  for (int rep = 0; arguments.measure && rep < arguments.reps; ++rep) {
    for (Entry& entry : entries) MeasureOnce(arguments, entry);
  }
  std::printf("%s\n", arguments.measure ? ("measured, median of " + std::to_string(arguments.reps) +
                                           " with its 95% interval")
                                              .c_str()
                                        : ("simulated, durations " + source).c_str());
  Print(entries, arguments);
  if (!refusals.empty()) std::printf("cannot run:\n%s", refusals.c_str());
  if (arguments.in_virtual_time) PrintCost(entries);
  if (arguments.json.empty()) return kExitDone;
  nlohmann::json json = {{"version", VersionText()}, {"durations", source}};
  for (const Entry& entry : entries) json["rows"].push_back(JsonOf(entry));
  std::ofstream out(arguments.json);
  out << json.dump(2) << std::endl;
  if (!out) throw std::runtime_error(arguments.json + ": cannot write it");
  return kExitDone;
}

}  // namespace

void AddBench(CLI::App& app, Command& command) {
  auto* bench = app.add_subcommand("bench", "Compare ways to run a configuration.");
  bench->require_subcommand(1);
  auto* verb = bench->add_subcommand(
      "schedules",
      "Compare pipeline schedules: step time, share of it in which devices idle beside what\n"
      "the books say for equal stages ((p-1)/m of the work for 1f1b and gpipe, a third of it\n"
      "for zb-h1, divided by the chunks for interleaved; p devices along the longest path),\n"
      "most microbatches kept by each stage, and a verdict against the first kind.\n"
      "Durations are those stated (synthetic modules), from --durations, or estimated from the\n"
      "number of multiplications at 10 GFLOP/s per rank, which is good for proportions only.\n"
      "Kinds that cannot run are told below the table.\n"
      "Exit code: 0 compared, 1 a run failed, 2 bad configuration.");
  auto arguments = std::make_shared<BenchArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--kinds", arguments->kinds,
                   "1f1b, gpipe, zb-h1, interleaved[:CHUNKS], csv:FILE, with commas between;\n"
                   "default: the configuration's own")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--microbatches", arguments->microbatches, "per step; several with commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 100'000));
  auto* simulate = verb->add_flag("--simulate", arguments->simulate,
                                  "simulate only: the default, starts nothing");
  auto* measure =
      verb->add_flag("--measure", arguments->measure, "run the job, one step of each kind in turn");
  verb->add_option("--reps", arguments->reps, "with --measure: steps of each kind; default 7")
      ->check(CLI::Range(1, 1000))
      ->needs(measure);
  auto* in_virtual_time =
      verb->add_flag("--virtual", arguments->in_virtual_time,
                     "also run the actors of all ranks here, on one thread and a simulated\n"
                     "clock: any number of ranks, in seconds");
  verb->add_option("--steps", arguments->steps, "with --virtual: steps; the last one is told")
      ->check(CLI::Range(1, 1000))
      ->needs(in_virtual_time);
  simulate->excludes(measure);
  verb->add_option("--durations", arguments->durations,
                   "take the passes' durations from the trace of this run directory")
      ->type_name("RUN")
      ->excludes(measure);
  verb->add_option("--scale", arguments->scales,
                   "what if a module took another time: vision=0.5; may be repeated")
      ->type_name("MODULE=FACTOR")
      ->allow_extra_args(false)
      ->excludes(measure);
  verb->add_option("--what-if", arguments->what_ifs,
                   "what if an edge took another time, in either direction:\n"
                   "'edge:vision->language=2x' (of what --durations says), =300us, =1.5ms; may be\n"
                   "repeated. Not with --virtual, where messages take no time")
      ->type_name("CHANGE")
      ->allow_extra_args(false)
      ->excludes(measure)
      ->excludes(in_virtual_time);
  verb->add_option("--json", arguments->json, "also write every sample to this file");
  verb->callback([&command, arguments] { command = [arguments] { return Bench(*arguments); }; });
}

}  // namespace troupe
