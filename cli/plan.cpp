// `troupe plan`: which layout, which placement, how fast.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/run_directory.hpp"
#include "cli/commands.hpp"
#include "cli/plan_files.hpp"
#include "cli/plan_inputs.hpp"
#include "cli/plan_report.hpp"
#include "cli/plan_search.hpp"
#include "cli/profile/run_scale.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/paths.hpp"
#include "layout/text.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/search/nearest.hpp"
#include "plan/search/planner.hpp"

namespace troupe {
namespace {

struct PlanArguments {
  ConfigArguments config;
  int gpus = 0;
  int nodes = 0;  ///< 0: as many devices each as the device file says
  std::string device;
  std::vector<std::string> own_devices;  ///< "MODULE=DEVICE:NUMBER"
  int top = 5;
  int explain = 0;  ///< number of a plan; 0: none
  int against = 0;  ///< 0: the best, or the next one of plan 1
  std::string out;
  SamplesFrom samples;
  std::string from;  ///< a run whose passes are taken
  bool replan = false;
};

/// Says that nothing fits, and what would.
int NothingFits(const PlanArguments& arguments, const Config& config, int gpus) {
  const auto devices_of = [&](const std::string& name, const Config& of) {
    return WithOwnDevices(DeviceInNodes(name, of, gpus, arguments.nodes), gpus,
                          arguments.own_devices, of);
  };
  const JobDevices devices = devices_of(arguments.device, config);
  std::fputs(NothingFitsText(arguments.config.path, config, gpus, devices).c_str(), stderr);
  const auto changes = NearestChanges(config, gpus, {arguments.device, KnownDevices(), devices_of});
  std::fputs(TextOf(changes).c_str(), stderr);
  return kExitFailed;
}

/// Throws if plan `number` of the table, which `flag` asks for, is not there.
void ExpectPlan(const std::vector<Plan>& plans, const char* flag, int number) {
  if (number <= static_cast<int>(plans.size())) return;
  throw LaunchError(
      std::string(flag) + " " + std::to_string(number) + ": there " +
      (plans.size() == 1 ? "is 1 plan" : "are " + std::to_string(plans.size()) + " plans") +
      "; --top shows more where there are more");
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

/// "h100-80g, with l40s-48g for vision"
std::string NamesOf(const Config& config, const JobDevices& devices) {
  std::vector<std::string> names = {devices.main.name};
  for (const ModuleConfig& module : config.modules) {
    if (!devices.HasOwn(module.name)) continue;
    names.push_back("with " + devices.Of(module.name).name + " for " + module.name);
  }
  return Listed(names);
}

/// Makes the rates of the device those of a run, and says what they were.
void TakeRates(const std::string& run, DeviceModel& device) {
  const RunScale scale = ScaleOf(run, device);
  std::printf("%s", ScaleText(run, scale, device).c_str());
  ScaleRates(scale, device);
}

int MakePlan(PlanArguments arguments) {
  if (arguments.config.path.empty() && arguments.from.empty()) {
    throw LaunchError("expected CONFIG, or --from RUN for the run's own");
  }
  if (arguments.replan && !arguments.config.path.empty()) {
    throw LaunchError("--replan compares the layout of " + arguments.from +
                      " with others; expected no CONFIG, got " + arguments.config.path);
  }
  if (arguments.config.path.empty()) arguments.config.path = ResolvedFile(arguments.from);
  if (arguments.replan && arguments.out.empty()) arguments.out = arguments.from + "/plans";
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  const Config& config = loaded.config;
  const int gpus = arguments.gpus > 0 ? arguments.gpus : config.cluster.ranks;
  DeviceModel device = DeviceInNodes(arguments.device, config, gpus, arguments.nodes);
  if (arguments.samples.data) RequireDataFiles(loaded);
  if (!arguments.from.empty()) {
    RequireSameModules(arguments.from, config);
    TakeRates(arguments.from, device);
  }
  const JobDevices devices = WithOwnDevices(device, gpus, arguments.own_devices, config);
  const Workload workload = WorkloadFrom(arguments.samples, config);
  const auto top = static_cast<std::size_t>(arguments.top);
  const auto [plans, how] = SearchPlans(config, devices, gpus, top, workload);
  if (plans.best.empty()) return NothingFits(arguments, config, gpus);
  std::fputs(how.c_str(), stderr);
  std::fputs(OriginText(config, devices, gpus, workload).c_str(), stdout);
  const std::optional<Plan> now = NowOf(config, devices, workload);
  std::printf("\n%s%s%s", TableOf(plans.best, now).c_str(), ReasonsOf(plans.best, now).c_str(),
              NotesOn(plans, top).c_str());
  if (!devices.own.empty()) {
    const Plans alone = SearchPlans(config, device, gpus, 1, workload).plans;
    std::fputs(WithoutOwnText(alone, plans.best.front()).c_str(), stdout);
  }
  std::fputs(ExplanationFor(arguments, plans.best).c_str(), stdout);
  if (now && !now->fits()) {
    std::printf("now: needs %.1f GB of a device that has %.0f\n", now->fullest.bytes * 1e-9,
                now->fullest.of_bytes * 1e-9);
  }
  if (!workload.empty()) {
    std::printf("%s", OrderText(plans.best.front(), devices, workload).c_str());
  }
  if (!arguments.out.empty()) {
    WritePlans(arguments.out, {arguments.config.path, loaded, NamesOf(config, devices)},
               plans.best);
  }
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
      "GPUs: those it uses, fewer than --gpus if more give nothing; + those of --device-of.\n"
      "MFU: share of their peak; - if it is not known. GB: of the device that holds most.\n"
      "bubble: share of the step in which devices compute nothing.\n"
      "sending: share of their passes that waits for collectives. batch: microbatches x samples.\n"
      "\"shared\": an encoder on the devices of the language model; \"in\": inside its first "
      "stage.\n"
      "\"window 8\": for 8 microbatches at a time, not for a step; \"offload\": activations wait "
      "in\n"
      "host memory.\n"
      "Below: how much longer the others take than the first plan, and what most of that is.\n"
      "linears, attention, elements (norms and the like) are time on operations, starting is to\n"
      "launch them.\n"
      "Of plans that only cut samples over cp in place of dp, one is shown. If nothing fits, it "
      "names\n"
      "what would be enough: more GPUs, larger ones, more devices of --device-of or none,\n"
      "optimizer.shard, bfloat16.\n"
      "Exit code: 0 planned, 1 nothing fits or a file cannot be written, 2 bad configuration or\n"
      "arguments.");
  auto arguments = std::make_shared<PlanArguments>();
  AddConfigArguments(*verb, arguments->config, /*required=*/false);
  verb->add_option("--gpus", arguments->gpus, "devices that there are; default: cluster.ranks")
      ->check(CLI::Range(1, kMostDevices));
  verb->add_option("--nodes", arguments->nodes,
                   "machines that they are in, with as many each; default: as many in each as the\n"
                   "device's file says, or [cluster.topology]")
      ->check(CLI::Range(1, kMostDevices));
  verb->add_option("--device", arguments->device,
                   "what they are: " + Listed(KnownDevices(), ", ") +
                       ",\nor the file of a device, as troupe profile writes it")
      ->required();
  verb->add_option(
          "--device-of", arguments->own_devices,
          "devices of another kind that only this encoder runs on, in nodes of their own:\n"
          "vision=l40s-48g:16 gives vision up to 16; once for each encoder")
      ->type_name("MODULE=DEVICE:NUMBER")
      ->allow_extra_args(false);
  verb->add_option("--top", arguments->top,
                   "plans to show, of those whose estimate before the simulation is within 5%\n"
                   "of the best one; default 5")
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
      ->type_name("FOLDER")
      ->check(WhyNoFolder);
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
                                "scaled to them, module by module; without CONFIG for its own;\n"
                                "not with --device-of")
                   ->type_name("RUN")
                   ->transform(FindRun)
                   ->excludes("--device-of");
  verb->add_flag("--replan", arguments->replan,
                 "compare the layout of that run with the best one, and write plans to resume it "
                 "with\n"
                 "into RUN/plans")
      ->needs(from);
  SetCommand(*verb, command, [arguments] { return MakePlan(*arguments); });
}

}  // namespace troupe
