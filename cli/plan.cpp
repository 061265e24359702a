// `troupe plan`: which layout, which placement, how fast.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>

#include "cli/commands.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "layout/text.hpp"
#include "plan/cost/account.hpp"
#include "plan/cost/device_file.hpp"
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
  try {
    return ReadDevice(name, run);
  } catch (const std::runtime_error& error) {
    throw LaunchError(std::string("--device: ") + error.what());
  }
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
                             Cell::Number(Formatted(step_ms < 10.0 ? "%.3f" : "%.1f", step_ms)),
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
  // What only the other one spends stands behind the line that precedes it there.
  auto place = own.begin();
  for (const AccountLine& line : theirs) {
    const auto same = std::ranges::find(own, line.what, &AccountLine::what);
    place = 1 + (same != own.end() ? same : own.insert(place, {line.what, 0.0}));
  }
  Table table{{"on the busiest devices, ms", "#" + std::to_string(arguments.explain),
               "#" + std::to_string(arguments.against), "difference"},
              {}};
  const bool is_short = slower.cost.step_s < 0.01;
  const auto add = [&](const std::string& what, double own_s, double their_s) {
    const char* const format = is_short ? "%.3f" : "%.1f";
    table.rows.push_back(
        {what, Cell::Number(Formatted(format, own_s * 1e3)),
         Cell::Number(Formatted(format, their_s * 1e3)),
         Cell::Number(Formatted(is_short ? "%+.3f" : "%+.1f", (own_s - their_s) * 1e3))});
  };
  for (const AccountLine& line : own) {
    const auto same = std::ranges::find(theirs, line.what, &AccountLine::what);
    add(line.what, line.seconds, same == theirs.end() ? 0.0 : same->seconds);
  }
  add("step", slower.cost.step_s, faster.cost.step_s);
  return "\n" + ToText(table);
}

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

/// How a file of a plan begins.
const std::string kFirstWords = "# Made by troupe plan: ";

/// Refuses to replace what is not a file of a plan, such as the configuration itself.
void RefuseOtherFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return;
  std::string begin(kFirstWords.size(), ' ');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (begin == kFirstWords) return;
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
  std::printf("wrote %s to %s\n",
              plans.size() == 1 ? "plan1.toml"
                                : ("plan1.toml to plan" + std::to_string(number) + ".toml").c_str(),
              arguments.out.c_str());
}

/// Returns plan `number` of the table, which `flag` asks for.
const Plan& PlanNumbered(const std::vector<Plan>& plans, const char* flag, int number) {
  if (number <= static_cast<int>(plans.size())) return plans[static_cast<std::size_t>(number) - 1];
  throw LaunchError(std::string(flag) + ": expected 1 to " + std::to_string(plans.size()) +
                    ", got " + std::to_string(number));
}

int MakePlan(const PlanArguments& arguments) {
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  const Config& config = loaded.config;
  DeviceModel device = DeviceFor(arguments.device, config.run);
  device.topology = With(config.cluster.topology, device.topology);
  const int gpus = arguments.gpus > 0 ? arguments.gpus : config.cluster.ranks;
  const auto begin = std::chrono::steady_clock::now();
  const SearchSpace space(config, device, {.ranks = gpus});
  const auto plans = BestPlans(space, config, device, static_cast<std::size_t>(arguments.top));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (plans.empty()) {
    std::fprintf(stderr, "%s: no layout of %s fits on %s of %.0f GB\n",
                 arguments.config.path.c_str(), config.Sink().name.c_str(),
                 Counted(gpus, "device").c_str(), device.memory_bytes * 1e-9);
    return kExitFailed;
  }
  std::string explanation;
  if (arguments.explain > 0) {
    explanation = ExplanationOf(PlanNumbered(plans, "--explain", arguments.explain),
                                PlanNumbered(plans, "--against", arguments.against), arguments);
  }
  std::fprintf(stderr, "%zu ways to run %s, %zu of them priced in full, searched in %.2f s\n",
               space.num_ways(), config.Sink().name.c_str(), space.num_priced(), took.count());
  const bool stated = config.cluster.topology != TopologyConfig{};
  std::printf("%s of %s: %s%s\nglobal batch %lld\n\n%s%s", Counted(gpus, "device").c_str(),
              device.name.c_str(), device.source.c_str(),
              stated ? "; but links as [cluster.topology] states" : "",
              static_cast<long long>(config.global_batch()), TableOf(plans).c_str(),
              explanation.c_str());
  if (!arguments.out.empty()) WriteFiles(arguments, loaded, plans);
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
      "With --explain: linears, attention, elements (norms and the like) are time on operations,\n"
      "starting is to launch them.\n"
      "Exit code: 0 planned, 1 nothing fits or a file cannot be written, 2 bad configuration.");
  auto arguments = std::make_shared<PlanArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--gpus", arguments->gpus, "devices that there are; default: cluster.ranks")
      ->check(CLI::Range(1, 65'536));
  verb->add_option("--device", arguments->device,
                   "what they are: " + Listed(KnownDevices(), ", ") +
                       ",\nor the file of a device, as troupe profile writes it")
      ->required();
  verb->add_option("--top", arguments->top,
                   "plans to show, of those within 5% of the best; default 5")
      ->check(CLI::Range(1, 64));
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
