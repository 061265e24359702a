#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <sys/resource.h>

#include "app/run_directory.hpp"
#include "app/version.hpp"
#include "cli/commands.hpp"
#include "cli/schedule/bench_table.hpp"
#include "cli/schedule/candidate.hpp"
#include "cli/schedule/timed_rounds.hpp"
#include "configs/report.hpp"
#include "files/output_file.hpp"
#include "trace/analyze/median.hpp"

namespace troupe {
namespace {

struct BenchArguments {
  ConfigArguments config;
  std::vector<std::string> kinds;         ///< as typed, with commas
  std::vector<std::string> microbatches;  ///< likewise
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

/// Runs one repetition of one kind: a warm-up step and a measured one, which it simulates with the
/// medians of its passes over replicas, ranks and microbatches.
void MeasureOnce(BenchEntry& entry) {
  const Candidate& candidate = entry.candidate;
  const TimedRound step = RunTimedRounds(candidate.plan, 1, candidate.microbatches()).front();
  double busy_seconds = step.other_seconds;
  StageTimes times;
  for (const auto& passes : step.stages) {
    std::map<PassKind, std::vector<std::int64_t>> took;
    for (const TimedPass& timed : passes) {
      const std::int64_t ns = timed.end_ns - timed.begin_ns;
      took[timed.pass.kind].push_back(ns);
      busy_seconds += static_cast<double>(ns) * 1e-9;
    }
    const std::int64_t weight_ns = Median(took[PassKind::kWeight]);
    times.stages.push_back({Median(took[PassKind::kForward]),
                            Median(took[PassKind::kBackward]) + weight_ns, weight_ns});
  }
  const double step_ms = step.seconds * 1e3;
  const auto ranks = static_cast<double>(candidate.plan->lock_steps().size());
  entry.step_ms.push_back(step_ms);
  entry.bubbles.push_back(1.0 - busy_seconds / (step.seconds * ranks));
  entry.errors.push_back(SimulateRow(candidate, times).step_ms / step_ms - 1.0);
}

void PrintCost(const std::vector<BenchEntry>& entries) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  for (const BenchEntry& entry : entries) {
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

BenchEntry Open(const BenchArguments& arguments, const std::string& kind, std::int64_t microbatches,
                std::string& source) {
  BenchEntry entry{LoadCandidate(arguments.config, kind, microbatches), {}};
  StageTimes times = TimesFor(entry.candidate, arguments.durations, arguments.scales);
  ChangeEdges(times, entry.candidate, arguments.what_ifs);
  source = times.source;
  entry.simulated = SimulateRow(entry.candidate, times);
  if (arguments.in_virtual_time) {
    entry.virtually = RunVirtually(entry.candidate, times, arguments.steps);
  }
  return entry;
}

/// Returns the kinds to compare: those of --kinds, or the configuration's own ("") and all others.
std::vector<std::string> KindsToCompare(const BenchArguments& arguments) {
  if (!arguments.kinds.empty()) return KindsOf("--kinds", arguments.kinds);
  // Reports errors of the configuration that do not depend on the kind.
  const Candidate own = LoadCandidate(arguments.config, "", 0);
  std::vector<std::string> kinds = {""};
  for (const char* kind : {"1f1b", "gpipe", "interleaved:2", "zb-h1"}) {
    const std::string name = kind;
    if (name.substr(0, name.find(':')) != own.kind) kinds.push_back(name);
  }
  return kinds;
}

struct Opened {
  std::vector<BenchEntry> entries;
  std::vector<Refusal> refusals;
  std::string source;  ///< of the durations
};

Opened OpenAll(const BenchArguments& arguments) {
  Opened opened;
  auto counts = CountsOf("--microbatches", arguments.microbatches);
  if (counts.empty()) counts.push_back(0);
  const auto kinds = KindsToCompare(arguments);
  for (const std::int64_t count : counts) {
    for (const std::string& kind : kinds) {
      std::string name = kind.empty() ? "the configuration's own kind" : kind;
      if (counts.size() > 1) name += " with " + std::to_string(count) + " microbatches";
      try {
        opened.entries.push_back(Open(arguments, kind, count, opened.source));
      } catch (const ConfigErrors& errors) {
        AddRefusal(opened.refusals, name, errors);
      } catch (const LayoutError& e) {
        AddRefusal(opened.refusals, name, e.what());
      }
    }
  }
  return opened;
}

/// Prints its plan first, and the remaining time after the first turn.
void MeasureAll(const BenchArguments& arguments, const std::string& source,
                std::vector<BenchEntry>& entries) {
  double stated_seconds = 0.0;
  std::string names;
  for (const BenchEntry& entry : entries) {
    names += (names.empty() ? "" : ", ") + entry.candidate.kind;
    stated_seconds += 2e-3 * entry.simulated.step_ms * arguments.reps;
  }
  std::fprintf(stderr, "running %s in turn, %d times: a warm-up step and one that counts",
               names.c_str(), arguments.reps);
  // Estimates are good for proportions only; stated durations are slept.
  if (source == "as stated") std::fprintf(stderr, "; at least %.0f s", stated_seconds);
  std::fprintf(stderr, "\n");
  const auto begin = std::chrono::steady_clock::now();
  // One of each in turn, so that other load of the machine affects all alike.
  for (int rep = 0; rep < arguments.reps; ++rep) {
    for (BenchEntry& entry : entries) MeasureOnce(entry);
    if (rep > 0 || arguments.reps == 1) continue;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "1 of %d took %.1f s: about %.0f s to go\n", arguments.reps, took.count(),
                 took.count() * (arguments.reps - 1));
  }
}

void WriteJson(const std::string& path, const Opened& opened) {
  nlohmann::json json = {{"version", VersionText()}, {"durations", opened.source}};
  for (const BenchEntry& entry : opened.entries) json["rows"].push_back(JsonOf(entry));
  WriteInPlace(path, json.dump(2) + "\n");
}

int Bench(const BenchArguments& arguments) {
  Opened opened = OpenAll(arguments);
  const std::string refusals = TextOf(opened.refusals);
  if (opened.entries.empty()) {
    std::fprintf(stderr, "%s", refusals.c_str());
    return kExitBadInput;
  }
  if (!arguments.json.empty()) RefuseWhatCannotBeWritten(arguments.json);
  if (arguments.measure) MeasureAll(arguments, opened.source, opened.entries);
  const std::string title =
      arguments.measure ? MeasuredTitle(arguments.reps) : "simulated, durations " + opened.source;
  std::printf("%s\n%s%s", title.c_str(), TextOf(opened.entries).c_str(),
              BatchesText(opened.entries).c_str());
  if (!refusals.empty()) std::printf("cannot run:\n%s", refusals.c_str());
  if (arguments.in_virtual_time) PrintCost(opened.entries);
  if (!arguments.json.empty()) WriteJson(arguments.json, opened);
  return kExitDone;
}

}  // namespace

void AddBench(CLI::App& app, Command& command) {
  auto* bench = app.add_subcommand("bench", "Compare ways to run a configuration.");
  bench->require_subcommand(1);
  auto* verb = bench->add_subcommand(
      "schedules",
      "Compare pipeline schedules: step time, the share of it in which devices idle (bubble) and\n"
      "the ideal share for equal stages ((p-1)/m of the work for 1f1b and gpipe, a third of it\n"
      "for zb-h1, divided by the chunks for interleaved; p devices along the longest path),\n"
      "most microbatches kept by each stage, and a verdict against the first kind.\n"
      "Durations are those stated (synthetic modules), from --durations, or estimated from the\n"
      "number of multiplications at 10 GFLOP/s per rank, which is good for proportions only.\n"
      "Kinds that cannot run are listed below the table, with the reason.\n"
      "Exit code: 0 compared, 1 a run failed, 2 bad configuration.");
  auto arguments = std::make_shared<BenchArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--kinds", arguments->kinds,
                   "1f1b, gpipe, zb-h1, interleaved[:CHUNKS], csv:FILE, with commas between;\n"
                   "others are compared with the first. Default: the configuration's own, then\n"
                   "1f1b, gpipe, interleaved:2 and zb-h1")
      ->allow_extra_args(false);
  verb->add_option("--microbatches", arguments->microbatches,
                   "per step, 1 to 100000; several with commas")
      ->allow_extra_args(false);
  auto* simulate = verb->add_flag("--simulate", arguments->simulate,
                                  "simulate only: the default, starts nothing");
  auto* measure =
      verb->add_flag("--measure", arguments->measure,
                     "run the job in this process, each kind in turn: --reps times a warm-up step\n"
                     "and a measured one; prints the remaining time after the first turn");
  verb->add_option("--reps", arguments->reps,
                   "with --measure: measured steps of each kind; default 7. The 95% interval of\n"
                   "the median needs at least 6")
      ->check(CLI::Range(1, 1000))
      ->needs(measure);
  auto* in_virtual_time =
      verb->add_flag("--virtual", arguments->in_virtual_time,
                     "also run the actors of all ranks here, on one thread and a simulated\n"
                     "clock: any number of ranks, in seconds");
  verb->add_option("--steps", arguments->steps, "with --virtual: steps; the last one is reported")
      ->check(CLI::Range(1, 1000))
      ->needs(in_virtual_time);
  simulate->excludes(measure);
  verb->add_option("--durations", arguments->durations,
                   "take the passes' durations from the trace of this run directory")
      ->type_name("RUN")
      ->transform(FindRun)
      ->excludes(measure);
  verb->add_option("--scale", arguments->scales,
                   "multiply a module's durations: vision=0.5; may be repeated")
      ->type_name("MODULE=FACTOR")
      ->allow_extra_args(false)
      ->excludes(measure);
  verb->add_option(
          "--what-if", arguments->what_ifs,
          "change the time of an edge, in both directions:\n"
          "'edge:vision->language=2x' (of its time in --durations), =300us, =1.5ms; may be\n"
          "repeated. Not with --virtual, where messages take no time")
      ->type_name("CHANGE")
      ->allow_extra_args(false)
      ->excludes(measure)
      ->excludes(in_virtual_time);
  verb->add_option("--json", arguments->json, "also write every sample to this file");
  SetCommand(*verb, command, [arguments] { return Bench(*arguments); });
  AddBenchLayouts(*bench, command);
}

}  // namespace troupe
