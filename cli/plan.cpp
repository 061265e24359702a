// `troupe plan`: which layout, which placement, how fast.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>

#include "app/run_directory.hpp"
#include "cli/commands.hpp"
#include "cli/plan_inputs.hpp"
#include "cli/plan_report.hpp"
#include "cli/profile/run_scale.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "layout/text.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/search/nearest.hpp"
#include "plan/search/planner.hpp"

namespace troupe {
namespace {

constexpr int kMostPlans = 64;

struct PlanArguments {
  ConfigArguments config;
  int gpus = 0;
  int nodes = 0;  ///< 0: as many devices each as the device file says
  std::string device;
  int top = 5;
  int explain = 0;  ///< number of a plan; 0: none
  int against = 0;  ///< 0: the best, or the next one of plan 1
  std::string out;
  SamplesFrom samples;
  std::string from;  ///< a run whose passes are taken
  bool replan = false;
};

/// The settings of a plan over the configuration, and those of the command line below them, by key.
std::map<std::string, std::string> ValuesOf(const Plan& plan, const LoadedConfig& loaded) {
  std::map<std::string, std::string> values;
  for (const auto& [key, origin] : loaded.origins) {
    if (origin.place.argument) values[key] = origin.value;
  }
  for (const std::string& setting : SettingsOf(loaded.config, plan.job)) {
    const auto equals = setting.find('=');
    values[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return values;
}

/// Says that nothing fits, and what would.
int NothingFits(const PlanArguments& arguments, const Config& config, int gpus) {
  const auto device_of = [&](const std::string& name, const Config& of) {
    return DeviceInNodes(name, of, gpus, arguments.nodes);
  };
  const double bytes = NamedDevice(arguments.device, config).memory_bytes;
  std::fprintf(stderr, "%s: no layout of %s fits on %s of %.0f GB\n", arguments.config.path.c_str(),
               config.Sink().name.c_str(), Counted(gpus, "device").c_str(), bytes * 1e-9);
  const auto changes = NearestChanges(config, gpus, {arguments.device, KnownDevices(), device_of});
  std::fputs(TextOf(changes).c_str(), stderr);
  return kExitFailed;
}

/// How a file of a plan begins.
const std::string kFirstWords = "# Made by troupe plan: ";

bool IsOfPlan(const std::string& path) {
  std::ifstream file(path);
  std::string begin(kFirstWords.size(), ' ');
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
         begin == kFirstWords;
}

/// Refuses to replace what is not a file of a plan, such as the configuration itself.
void RefuseOtherFile(const std::string& path) {
  if (!std::filesystem::exists(path) || IsOfPlan(path)) return;
  throw LaunchError("--out: " + path + " is there and was not made by troupe plan");
}

/// The plan as a file that extends the configuration.
std::string FileOf(const Plan& plan, const LoadedConfig& loaded, const std::string& extends,
                   const std::string& device) {
  std::string text = kFirstWords + Formatted("%.1f", plan.cost.step_s * 1e3) +
                     " ms per step by the cost model, on " + Counted(plan.job.ranks, "device") +
                     " of " + device + "\nschema = 1\nextends = [" + Quoted(extends) + "]\n\n";
  const auto values = ValuesOf(plan, loaded);
  for (const auto& [key, value] : values) {
    if (!key.starts_with("edges.")) text += key + " = " + value + "\n";
  }
  for (const EdgeConfig& edge : loaded.config.edges) {
    const std::string prefix = "edges." + edge.from + "." + edge.to + ".";
    std::string lines;
    for (const auto& [key, value] : values) {
      if (key == prefix + "from" || key == prefix + "to") continue;
      if (key.starts_with(prefix)) lines += key.substr(prefix.size()) + " = " + value + "\n";
    }
    if (lines.empty()) continue;
    text += "\n[[edges]]\nfrom = " + Quoted(edge.from) + "\nto = " + Quoted(edge.to) + "\n" + lines;
  }
  return text;
}

/// Removes the files of an earlier run from a number on, but not the one that the plans extend. Returns how
/// many there were.
int RemoveFrom(int number, const std::function<std::filesystem::path(int)>& path_of,
               const std::string& extended) {
  int removed = 0;
  std::error_code error;
  for (; number <= kMostPlans; ++number) {
    const std::filesystem::path path = path_of(number);
    if (!IsOfPlan(path.string()) || std::filesystem::equivalent(path, extended, error)) continue;
    removed += std::filesystem::remove(path, error) ? 1 : 0;
  }
  return removed;
}

void WriteFiles(const PlanArguments& arguments, const LoadedConfig& loaded,
                const std::vector<Plan>& plans) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(arguments.out, error);
  if (error) throw FileError(arguments.out, "create", error.value());
  const fs::path folder = fs::canonical(arguments.out);  // ".." leads from where a link leads to
  const std::string extends =
      fs::relative(fs::canonical(arguments.config.path), folder).generic_string();
  const auto path_of = [&folder](int number) {
    return folder / ("plan" + std::to_string(number) + ".toml");
  };
  for (std::size_t i = 1; i <= plans.size(); ++i) {
    const fs::path path = path_of(static_cast<int>(i));
    RefuseOtherFile(path.string());
    if (fs::equivalent(path, arguments.config.path, error)) {
      throw LaunchError("--out: would replace " + arguments.config.path +
                        ", which the plans extend; expected another folder");
    }
  }
  int number = 0;
  for (const Plan& plan : plans) {
    const fs::path path = path_of(++number);
    WriteInPlace(path.string(), FileOf(plan, loaded, extends, arguments.device));
    if (LoadConfig(path.string()).config != plan.config) {
      throw std::logic_error(path.string() + ": loads as another configuration than was planned");
    }
  }
  const int removed = RemoveFrom(number + 1, path_of, arguments.config.path);
  std::printf(
      "wrote %s to %s%s\n",
      plans.size() == 1 ? "plan1.toml"
                        : ("plan1.toml to plan" + std::to_string(number) + ".toml").c_str(),
      arguments.out.c_str(),
      removed > 0 ? (", removed " + Counted(removed, "file") + " of more plans").c_str() : "");
}

/// Throws if plan `number` of the table, which `flag` asks for, is not there.
void ExpectPlan(const std::vector<Plan>& plans, const char* flag, int number) {
  if (number <= static_cast<int>(plans.size())) return;
  throw LaunchError(std::string(flag) + ": expected 1 to " + std::to_string(plans.size()) +
                    ", got " + std::to_string(number));
}

/// Returns what --explain asks for.
std::string ExplanationFor(const PlanArguments& arguments, const std::vector<Plan>& plans) {
  if (arguments.explain == 0) return {};
  ExpectPlan(plans, "--explain", arguments.explain);
  ExpectPlan(plans, "--against", arguments.against);
  const auto number = static_cast<std::size_t>(arguments.explain);
  auto against = static_cast<std::size_t>(arguments.against);
  if (against == 0) against = number > 1 ? 1 : std::min<std::size_t>(plans.size(), 2);
  return ExplanationOf(plans, number, against == number ? 0 : against);
}

/// Returns a report of simulations that go on for long.
PlanProgress LongProgress(std::chrono::steady_clock::time_point begin) {
  return [next = begin + std::chrono::seconds(3)](std::size_t number, std::size_t all) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return;
    next = now + std::chrono::seconds(3);
    std::fprintf(stderr, "simulates plan %zu of %zu\n", number + 1, all);
  };
}

/// Says what else the numbers of a device rest on.
void PrintOrigin(const Config& config, const DeviceModel& device, int gpus,
                 const Workload& workload) {
  const bool stated = config.cluster.topology != TopologyConfig{};
  std::printf(
      "%s of %s: %s%s\nglobal batch %lld, %s", Counted(gpus, "device").c_str(), device.name.c_str(),
      device.source.c_str(), stated ? "; but links as [cluster.topology] states" : "",
      static_cast<long long>(config.global_batch()), WorkloadText(workload, config).c_str());
  std::printf("%s", UnprofiledText(config, device).c_str());
}

/// Says what a run gains by going on with the best plan.
void PrintReplan(const PlanArguments& arguments, const Plans& plans, const Plan& now) {
  const double now_s = now.cost.step_s;
  const double best_s = plans.best.front().cost.step_s;
  constexpr double kWorthIt = 0.99;
  if (best_s > kWorthIt * now_s) {
    std::printf("%s has about the best layout there is: go on\n", arguments.from.c_str());
    return;
  }
  std::printf(
      "plan 1 takes %.0f%% less time than %s; go on with\n"
      "  troupe train %s/plan1.toml --resume %s\n",
      100.0 * (1.0 - best_s / now_s), arguments.from.c_str(), arguments.out.c_str(),
      arguments.from.c_str());
}

/// Makes the rates of the device those of a run, and says what they were.
void TakeRates(const std::string& run, DeviceModel& device) {
  const RunScale scale = ScaleOf(run, device);
  std::printf("%s", ScaleText(run, scale, device).c_str());
  ScaleRates(scale, device);
}

int MakePlan(PlanArguments arguments) {
  if (arguments.config.path.empty()) {
    if (arguments.from.empty())
      throw LaunchError("expected CONFIG, or --from RUN for the run's own");
    arguments.config.path = ResolvedFile(arguments.from);
  }
  if (arguments.replan && arguments.out.empty()) arguments.out = arguments.from + "/plans";
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  const Config& config = loaded.config;
  const int gpus = arguments.gpus > 0 ? arguments.gpus : config.cluster.ranks;
  DeviceModel device = DeviceInNodes(arguments.device, config, gpus, arguments.nodes);
  if (!arguments.from.empty()) TakeRates(arguments.from, device);
  const Workload workload = WorkloadFrom(arguments.samples, config);
  const auto begin = std::chrono::steady_clock::now();
  const SearchSpace space(config, device, {.ranks = gpus, .average = AverageWork(workload)});
  const auto top = static_cast<std::size_t>(arguments.top);
  const Plans plans = BestPlans(space, config, device, top, LongProgress(begin), workload);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (plans.best.empty()) return NothingFits(arguments, config, gpus);
  const std::string explanation = ExplanationFor(arguments, plans.best);
  std::fprintf(stderr, "%zu ways to run %s, %zu of them priced in full, searched in %.2f s\n",
               space.num_ways(), config.Sink().name.c_str(), space.num_priced(), took.count());
  PrintOrigin(config, device, gpus, workload);
  const std::optional<Plan> now = NowOf(config, device, workload);
  std::printf("\n%s%s%s", TableOf(plans.best, now).c_str(), NotesOn(plans, top).c_str(),
              explanation.c_str());
  if (now && device.memory_bytes > 0.0 && now->bytes > device.memory_bytes) {
    std::printf("now: needs %.1f GB of a device that has %.0f\n", now->bytes * 1e-9,
                device.memory_bytes * 1e-9);
  }
  if (!workload.empty()) {
    std::printf("%s", OrderText(plans.best.front(), device, workload).c_str());
  }
  if (!arguments.out.empty()) WriteFiles(arguments, loaded, plans.best);
  if (arguments.replan && now) PrintReplan(arguments, plans, *now);
  return kExitDone;
}

}  // namespace

void AddPlan(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "plan",
      "Find the layouts, placements and schedule with the shortest step, by the cost model; needs "
      "no\n"
      "GPU. The global batch stays that of CONFIG.\n"
      "GPUs: those it uses, fewer than --gpus if more give nothing. MFU: share of their peak. GB: "
      "of\n"
      "the device that holds most. bubble: share of the step in which devices compute nothing.\n"
      "sending: share of their passes that waits for collectives. batch: microbatches x samples.\n"
      "\"shared\": an encoder on the devices of the language model; \"in\": inside its first "
      "stage.\n"
      "\"window 8\": for 8 microbatches at a time, not for a step; \"offload\": activations wait in\n"
      "host memory.\n"
      "With --explain: linears, attention, elements (norms and the like) are time on operations,\n"
      "starting is to launch them.\n"
      "Of plans that only cut samples over cp in place of dp, one is shown. If nothing fits, it "
      "names\n"
      "what would be enough: more GPUs, larger ones, optimizer.shard, bfloat16.\n"
      "Exit code: 0 planned, 1 nothing fits or a file cannot be written, 2 bad configuration.");
  auto arguments = std::make_shared<PlanArguments>();
  AddConfigArguments(*verb, arguments->config, /*required=*/false);
  verb->add_option("--gpus", arguments->gpus, "devices that there are; default: cluster.ranks")
      ->check(CLI::Range(1, 65'536));
  verb->add_option("--nodes", arguments->nodes,
                   "machines that they are in, with as many each; default: as many in each as the\n"
                   "device's file says, or [cluster.topology]")
      ->check(CLI::Range(1, 65'536));
  verb->add_option("--device", arguments->device,
                   "what they are: " + Listed(KnownDevices(), ", ") +
                       ",\nor the file of a device, as troupe profile writes it")
      ->required();
  verb->add_option("--top", arguments->top,
                   "plans to show, of those within 5% of the best; default 5")
      ->check(CLI::Range(1, kMostPlans));
  auto* explain = verb->add_option("--explain", arguments->explain,
                                   "show where each millisecond of plan N goes")
                      ->type_name("N")
                      ->check(CLI::Range(1, kMostPlans));
  verb->add_option("--against", arguments->against,
                   "with --explain: compared with plan M; default 1, of plan 1 the next")
      ->type_name("M")
      ->check(CLI::Range(1, kMostPlans))
      ->needs(explain);
  verb->add_option("--out", arguments->out,
                   "write each as planN.toml, which extends CONFIG, into this folder")
      ->type_name("FOLDER");
  auto* data = verb->add_flag("--data", arguments->samples.data,
                              "price the samples that the first steps read from data.train, not "
                              "full ones");
  verb->add_option("--samples", arguments->samples.list,
                   "the same with samples of this CSV: tokens, labels, and items by encoder; the\n"
                   "first line names the columns")
      ->type_name("FILE")
      ->excludes(data);
  auto* from = verb->add_option("--from", arguments->from,
                                "with the passes that this run measured: the device's rates are\n"
                                "scaled to them, module by module; without CONFIG for its own")
                   ->type_name("RUN")
                   ->transform(FindRun);
  verb->add_flag("--replan", arguments->replan,
                 "compare the layout of that run with the best one, and write plans to resume it "
                 "with\n"
                 "into RUN/plans")
      ->needs(from);
  SetCommand(*verb, command, [arguments] { return MakePlan(*arguments); });
}

}  // namespace troupe
