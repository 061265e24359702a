// `troupe plan`: which layout, which placement, how fast.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"
#include "files/output_file.hpp"
#include "layout/text.hpp"
#include "plan/cost/account.hpp"
#include "plan/cost/known_devices.hpp"
#include "plan/search/planner.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

struct PlanArguments {
  ConfigArguments config;
  int gpus = 0;
  std::string device;
  int top = 5;
  int explain = 0;  ///< number of a plan; 0: none
  int against = 1;
  std::string out;
};

DeviceModel DeviceFor(const std::string& name, const RunConfig& run) {
  std::vector<std::string> names;
  for (const DeviceSpecification& device : KnownDevices()) {
    if (device.name == name) return DeviceModelOf(device, run);
    names.emplace_back(device.name);
  }
  throw LaunchError("--device: expected " + Listed(names) + ", got " + Quoted(name));
}

std::string LayoutText(const Config& config, const ModuleConfig& module) {
  if (module.inline_in) return "in " + *module.inline_in;
  std::string text = ToString(module.layout);
  for (const EdgeConfig& edge : config.edges) {
    if (edge.from == module.name && PlacementOfEdge(config, edge) == Placement::kColocated) {
      text += ", shared";
    }
  }
  return text;
}

std::string ScheduleText(const ScheduleConfig& schedule) {
  const std::string kind = ToString(schedule.kind);
  return schedule.kind == ScheduleKind::kInterleaved ? kind + ":" + std::to_string(schedule.chunks)
                                                     : kind;
}

std::string TableOf(const std::vector<Plan>& plans) {
  Table table{{"#", "step ms", "samples/s", "GPUs", "MFU", "GB", "bubble", "sending"}, {}};
  for (const ModuleConfig& module : plans.front().config.modules) {
    table.columns.push_back(module.name);
  }
  for (const char* more : {"schedule", "batch"}) table.columns.emplace_back(more);
  int number = 0;
  for (const Plan& plan : plans) {
    const double step_ms = plan.cost.step_s * 1e3;
    const auto batch = static_cast<double>(plan.config.global_batch());
    std::vector<Cell> row = {++number,
                             Cell::Number(Formatted("%.1f", step_ms)),
                             Cell::Number(Formatted("%.1f", batch / plan.cost.step_s)),
                             plan.job.ranks,
                             Cell::Number(Percent(plan.mfu)),
                             Cell::Number(Formatted("%.1f", plan.bytes * 1e-9)),
                             Cell::Number(Percent(plan.bubble)),
                             Cell::Number(Percent(plan.sending))};
    for (const ModuleConfig& module : plan.config.modules) {
      row.emplace_back(LayoutText(plan.config, module));
    }
    const ScheduleConfig& schedule = plan.config.schedule;
    row.emplace_back(ScheduleText(schedule));
    row.emplace_back(std::to_string(schedule.microbatches) + " x " +
                     std::to_string(schedule.micro_batch_size));
    table.rows.push_back(std::move(row));
  }
  return ToText(table);
}

/// Where the milliseconds of two plans go, line by line.
std::string ExplanationOf(const Plan& slower, const Plan& faster, const PlanArguments& arguments) {
  const auto lines_of = [](const Plan& plan) { return AccountOf(JobPlan(plan.config), plan.cost); };
  const auto theirs = lines_of(faster);
  auto own = lines_of(slower);
  for (const AccountLine& line : theirs) {
    if (std::ranges::find(own, line.what, &AccountLine::what) != own.end()) continue;
    own.push_back({line.what, 0.0});
  }
  Table table{{"on the busiest devices, ms", "#" + std::to_string(arguments.explain),
               "#" + std::to_string(arguments.against), "difference"},
              {}};
  const auto add = [&table](const std::string& what, double own_s, double their_s) {
    table.rows.push_back({what, Cell::Number(Formatted("%.1f", own_s * 1e3)),
                          Cell::Number(Formatted("%.1f", their_s * 1e3)),
                          Cell::Number(Formatted("%+.1f", (own_s - their_s) * 1e3))});
  };
  for (const AccountLine& line : own) {
    const auto same = std::ranges::find(theirs, line.what, &AccountLine::what);
    add(line.what, line.seconds, same == theirs.end() ? 0.0 : same->seconds);
  }
  add("step", slower.cost.step_s, faster.cost.step_s);
  return "\n" + ToText(table);
}

/// The plan as a file that extends the configuration.
std::string FileOf(const Plan& plan, const Config& config, const std::string& extends) {
  std::string text = "# " + Formatted("%.1f", plan.cost.step_s * 1e3) +
                     " ms per step by the cost model, on " + Counted(plan.job.ranks, "device") +
                     ".\nschema = 1\nextends = [" + Quoted(extends) + "]\n\n";
  std::string edges;
  for (const std::string& setting : SettingsOf(config, plan.job)) {
    if (setting.starts_with("edges.")) continue;
    const auto equals = setting.find('=');
    text += setting.substr(0, equals) + " = " + setting.substr(equals + 1) + "\n";
  }
  for (const EdgeConfig& edge : plan.config.edges) {
    if (edge.credits == config.FindEdge(edge.from, edge.to)->credits) continue;
    text += "\n[[edges]]\nfrom = " + Quoted(edge.from) + "\nto = " + Quoted(edge.to) +
            "\ncredits = " + std::to_string(edge.credits) + "\n";
  }
  return text;
}

void WriteFiles(const PlanArguments& arguments, const Config& config,
                const std::vector<Plan>& plans) {
  namespace fs = std::filesystem;
  fs::create_directories(arguments.out);
  const std::string extends = fs::relative(arguments.config.path, arguments.out).generic_string();
  int number = 0;
  for (const Plan& plan : plans) {
    const fs::path path = fs::path(arguments.out) / ("plan" + std::to_string(++number) + ".toml");
    WriteInPlace(path.string(), FileOf(plan, config, extends));
    LoadConfig(path.string());  // what a plan says must be legal
  }
  std::printf("wrote %s to %s\n",
              plans.size() == 1 ? "plan1.toml"
                                : ("plan1.toml to plan" + std::to_string(number) + ".toml").c_str(),
              arguments.out.c_str());
}

int MakePlan(const PlanArguments& arguments) {
  const Config config = LoadConfig(arguments.config.path, arguments.config.overrides).config;
  DeviceModel device = DeviceFor(arguments.device, config.run);
  device.topology = With(config.cluster.topology, device.topology);
  const int gpus = arguments.gpus > 0 ? arguments.gpus : config.cluster.ranks;
  const auto begin = std::chrono::steady_clock::now();
  const SearchSpace space(config, device, {.ranks = gpus});
  const auto plans = BestPlans(space, config, device, static_cast<std::size_t>(arguments.top));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (plans.empty()) {
    std::fprintf(stderr, "%s: no layout of %zu fits on %s of %.0f GB\n",
                 arguments.config.path.c_str(), space.num_sinks(), Counted(gpus, "device").c_str(),
                 device.memory_bytes * 1e-9);
    return kExitFailed;
  }
  std::fprintf(stderr, "%zu ways to run %s fit, searched in %.2f s\n", space.num_sinks(),
               config.Sink().name.c_str(), took.count());
  std::printf("%s of %s: %s\nglobal batch %lld\n\n%s", Counted(gpus, "device").c_str(),
              device.name.c_str(), device.source.c_str(),
              static_cast<long long>(config.global_batch()), TableOf(plans).c_str());
  if (arguments.explain > 0) {
    const auto number_of = [&](const char* flag, int number) -> const Plan& {
      if (number <= static_cast<int>(plans.size()))
        return plans[static_cast<std::size_t>(number) - 1];
      throw LaunchError(std::string(flag) + ": expected 1 to " + std::to_string(plans.size()) +
                        ", got " + std::to_string(number));
    };
    std::printf("%s", ExplanationOf(number_of("--explain", arguments.explain),
                                    number_of("--against", arguments.against), arguments)
                          .c_str());
  }
  if (!arguments.out.empty()) WriteFiles(arguments, config, plans);
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
      "Exit code: 0 planned, 1 nothing fits, 2 bad configuration.");
  auto arguments = std::make_shared<PlanArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--gpus", arguments->gpus, "devices that there are; default: cluster.ranks")
      ->check(CLI::Range(1, 65'536));
  std::string names;
  for (const DeviceSpecification& device : KnownDevices()) {
    names += (names.empty() ? "" : ", ") + std::string(device.name);
  }
  verb->add_option("--device", arguments->device, "what they are: " + names)->required();
  verb->add_option("--top", arguments->top, "plans to show; default 5")->check(CLI::Range(1, 64));
  auto* explain = verb->add_option("--explain", arguments->explain,
                                   "show where each millisecond of plan N goes")
                      ->type_name("N")
                      ->check(CLI::Range(1, 64));
  verb->add_option("--against", arguments->against,
                   "with --explain: compared with plan M; default 1")
      ->type_name("M")
      ->check(CLI::Range(1, 64))
      ->needs(explain);
  verb->add_option("--out", arguments->out,
                   "write each as planN.toml, which extends CONFIG, into this folder")
      ->type_name("FOLDER");
  SetCommand(*verb, command, [arguments] { return MakePlan(*arguments); });
}

}  // namespace troupe
