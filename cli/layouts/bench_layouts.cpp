// `troupe bench layouts`: the best few plans, run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/run_job.hpp"
#include "app/version.hpp"
#include "cli/commands.hpp"
#include "cli/layouts/layout_table.hpp"
#include "cli/plan_files.hpp"
#include "cli/plan_inputs.hpp"
#include "cli/plan_report.hpp"
#include "cli/plan_search.hpp"
#include "cli/profile/profile.hpp"
#include "cli/schedule/bench_table.hpp"
#include "cli/schedule/timed_rounds.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"
#include "files/output_file.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/memory.hpp"
#include "plan/process_plan.hpp"

namespace troupe {
namespace {

struct LayoutsArguments {
  ConfigArguments config;
  int ranks = 0;
  std::string device;
  int profile_seconds = 20;
  int top = 5;
  bool measure = false;
  int reps = 7;
  std::string json;
  std::string out;
};

/// The device of --device, or those here, measured now.
DeviceModel DeviceFor(const LayoutsArguments& arguments, const Config& config) {
  if (!arguments.device.empty()) return NamedDevice(arguments.device, config);
  std::fprintf(stderr, "no --device: measures what passes take here, as troupe profile does\n");
  DeviceModel device = ProfiledHere(config, arguments.profile_seconds).device;
  device.name = "this machine";
  device.topology = With(config.cluster.topology, device.topology);
  return device;
}

/// The samples of the step that is run, which is the second one; none for modules that read no data.
Workload MeasuredStep(const Config& config, const InputSource& source) {
  const bool reads_data = dynamic_cast<const RowSource*>(&source) != nullptr;
  return reads_data ? StepsOfData(config, 1, 1) : Workload();
}

/// The job in this process alone, without checkpoints.
Config OfOneProcess(Config config) {
  config.cluster.nodes = {{config.cluster.nodes.front().name, "", config.cluster.ranks}};
  config.checkpoint = {.every = 0, .every_minutes = 0.0, .async = false, .replicas = 0};
  return config;
}

/// The estimate of what TimedRound::memory_bytes measures.
std::size_t EstimatedBytes(const JobPlan& plan) {
  const ClusterConfig& cluster = plan.config().cluster;
  std::size_t sum = 0;
  std::size_t most = 0;
  for (const auto& [rank, bytes] :
       RankNeeds(StageNeeds(plan, ProcessPlan::Single(cluster.ranks)))) {
    sum += bytes;
    most = std::max(most, bytes);
  }
  return cluster.backend == Backend::kCuda ? most : sum;
}

std::string InOneLine(const std::exception& error) {
  return Listed(Split(error.what(), '\n'), "; ");
}

LayoutEntry EntryOf(std::size_t number, const Plan& plan) {
  LayoutEntry entry{number, plan};
  try {
    entry.job = std::make_shared<const JobPlan>(OfOneProcess(plan.config));
    entry.estimated_bytes = EstimatedBytes(*entry.job);
  } catch (const std::exception& error) {
    entry.failure = InOneLine(error);
  }
  return entry;
}

/// Runs a warm-up step and one that counts.
void RunLayout(const TimedSetup& setup, LayoutEntry& entry) {
  try {
    const Config& config = entry.job->config();
    setup.source->TakeLayouts(config);
    const TimedRound step =
        RunTimedRounds(entry.job, 1, config.schedule.microbatches, setup).front();
    if (setup.watch_memory) {
      entry.memory_bytes = step.memory_bytes;
    } else {
      entry.step_ms.push_back(step.seconds * 1e3);
    }
  } catch (const std::exception& error) {
    entry.failure = InOneLine(error);  // the others are still worth comparing
  }
}

/// Runs one of each in turn, so that other load of the machine affects all alike. In a turn before them it
/// watches memory, which takes time.
void RunLayouts(const std::shared_ptr<InputSource>& source, int reps,
                std::vector<LayoutEntry>& entries) {
  std::fprintf(stderr,
               "running %s in turn, once for memory, then %s: a warm-up step and one that counts\n",
               Counted(static_cast<std::int64_t>(entries.size()), "layout").c_str(),
               Counted(reps, "time").c_str());
  const auto begin = std::chrono::steady_clock::now();
  for (int turn = 0; turn <= reps; ++turn) {
    if (turn > 0) std::fprintf(stderr, "turn %d of %d\n", turn, reps);
    for (LayoutEntry& entry : entries) {
      if (!entry.failure.empty()) continue;
      if (turn == 0) {
        std::fprintf(stderr, "%s: %s\n", NumberOf(entry).c_str(),
                     Listed(LayoutCells(entry.plan.config)).c_str());
      }
      RunLayout({source, /*watch_memory=*/turn == 0}, entry);
    }
    if (turn > 0) continue;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "that took %.1f s: about %.0f s to go\n", took.count(),
                 took.count() * reps);
  }
}

/// What is to be known about a table of layouts that ran.
std::string NotesOnRuns(const std::vector<LayoutEntry>& entries, const Config& config) {
  const bool on_gpus = config.cluster.backend == Backend::kCuda;
  std::string text = on_gpus
                         ? "memory: of the GPU that holds most, at the ends of its passes\n"
                         : "memory: of all ranks together, which share the heap of this process\n";
  int most_ranks = 0;
  for (const LayoutEntry& entry : entries) most_ranks = std::max(most_ranks, entry.plan.job.ranks);
  const int cores = UsableCores();
  if (!on_gpus && most_ranks > cores) {
    text += RanksOnCores(most_ranks, cores) + ": predicted steps are those with a core for each\n";
  }
  return text;
}

nlohmann::json JsonOfRuns(const std::vector<LayoutEntry>& entries, const Config& config,
                          const DeviceModel& device) {
  const bool on_gpus = config.cluster.backend == Backend::kCuda;
  nlohmann::json json = {{"version", VersionText()},
                         {"device", device.name},
                         {"device_source", device.source},
                         {"cores", UsableCores()},
                         {"global_batch", config.global_batch()},
                         {"memory_of", on_gpus ? "fullest GPU" : "all ranks"},
                         {"in_predicted_order", InPredictedOrder(entries)},
                         {"rows", nlohmann::json::array()}};
  for (const LayoutEntry& entry : entries) json["rows"].push_back(JsonOf(entry, config));
  return json;
}

/// The plans of the search, and the configuration as it stands if it has as many ranks.
std::vector<LayoutEntry> EntriesOf(const Plans& plans, const std::optional<Plan>& now) {
  std::vector<LayoutEntry> entries;
  for (const Plan& plan : plans.best) {
    entries.push_back(EntryOf(entries.size() + 1, plan));
  }
  if (now) entries.push_back(EntryOf(0, *now));
  return entries;
}

int BenchLayouts(const LayoutsArguments& arguments) {
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  const Config& config = loaded.config;
  const int ranks = arguments.ranks > 0 ? arguments.ranks : config.cluster.ranks;
  const auto source = OpenInputs(config);
  if (!arguments.json.empty()) RefuseWhatCannotBeWritten(arguments.json);
  const DeviceModel device = DeviceFor(arguments, config);
  const Workload workload = MeasuredStep(config, *source);
  const auto top = static_cast<std::size_t>(arguments.top);
  const auto [plans, how] = SearchPlans(config, device, ranks, top, workload);
  if (plans.best.empty()) {
    std::fprintf(stderr, "%s`troupe plan` names what would be enough\n",
                 NothingFitsText(arguments.config.path, config, ranks, device).c_str());
    return kExitFailed;
  }
  std::fputs(how.c_str(), stderr);
  if (!arguments.out.empty()) {
    WritePlans(arguments.out, {arguments.config.path, loaded, device.name}, plans.best);
  }
  const std::optional<Plan> now =
      config.cluster.ranks == ranks ? NowOf(config, device, workload) : std::nullopt;
  std::vector<LayoutEntry> entries = EntriesOf(plans, now);
  if (arguments.measure) RunLayouts(source, arguments.reps, entries);
  std::printf("%s\n", OriginText(config, device, ranks, workload).c_str());
  if (arguments.measure) {
    std::printf("%s\n%s%s%s%s%s", MeasuredTitle(arguments.reps).c_str(),
                MeasuredTableOf(entries).c_str(), NotesOn(plans, top).c_str(),
                NotesOnRuns(entries, config).c_str(), VerdictOf(entries).c_str(),
                FailuresText(entries).c_str());
  } else {
    std::printf("%s%s", TableOf(plans.best, now).c_str(), NotesOn(plans, top).c_str());
  }
  if (!arguments.json.empty()) {
    WriteInPlace(arguments.json, JsonOfRuns(entries, config, device).dump(2) + "\n");
  }
  return FailuresText(entries).empty() ? kExitDone : kExitFailed;
}

}  // namespace

void AddBenchLayouts(CLI::App& bench, Command& command) {
  auto* verb = bench.add_subcommand(
      "layouts",
      "Compare the best layouts that `troupe plan` finds for the devices here with each other and\n"
      "with CONFIG as it stands (now, if it has as many ranks). With --measure each trains in "
      "this\n"
      "process on one and the same global batch of data.train, whose samples the plans are for.\n"
      "step ms: measured, next to what was predicted. memory: the most at the ends of passes, as\n"
      "the runtime measures it. On GPUs that of the fullest one. On CPUs all ranks share a "
      "process,\n"
      "so it is what the heap of this process has in use, less what it had before the job: all\n"
      "ranks together. Next to it is the estimate of the same. ranks, layouts, "
      "schedule\n"
      "and batch are those of `troupe plan`.\n"
      "Exit code: 0 compared, 1 a run failed, nothing fits or a file cannot be written, 2 bad\n"
      "configuration or arguments.");
  auto arguments = std::make_shared<LayoutsArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--ranks", arguments->ranks, "ranks to use at most; default: cluster.ranks")
      ->check(CLI::Range(1, 65'536));
  auto* device =
      verb->add_option("--device", arguments->device,
                       "what a rank computes on: the file of a device, as troupe profile writes\n"
                       "it, or " +
                           ListedWithOr(KnownDevices()) + ". Default: measured now")
          ->type_name("FILE");
  verb->add_option("--profile-seconds", arguments->profile_seconds,
                   "without --device: time to measure for; default 20")
      ->check(CLI::Range(5, 3600))
      ->excludes(device);
  verb->add_option("--top", arguments->top,
                   "plans to compare, as those of `troupe plan`; default 5")
      ->check(CLI::Range(1, kMostPlans));
  auto* measure =
      verb->add_flag("--measure", arguments->measure,
                     "run them in turn, once for memory, then --reps times: a warm-up step and\n"
                     "a measured one; prints the remaining time after the first turn.\n"
                     "Default: predict only");
  verb->add_option("--reps", arguments->reps,
                   "with --measure: measured steps of each; default 7. The 95% interval of the\n"
                   "median needs at least 6")
      ->check(CLI::Range(1, 1000))
      ->needs(measure);
  verb->add_option("--json", arguments->json,
                   "also write every sample to this file; plan 0 is CONFIG as it stands")
      ->type_name("FILE")
      ->check(WhyNoFile);
  verb->add_option("--out", arguments->out,
                   "write each plan as planN.toml, which extends CONFIG, into this folder")
      ->type_name("FOLDER")
      ->check(WhyNoFolder);
  SetCommand(*verb, command, [arguments] { return BenchLayouts(*arguments); });
}

}  // namespace troupe
