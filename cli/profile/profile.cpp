// `troupe profile`: times the passes of a configuration's modules on the devices here.
#include "cli/profile/profile.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <unistd.h>

#include "app/version.hpp"
#include "cli/commands.hpp"
#include "configs/loader.hpp"
#include "files/output_file.hpp"
#include "files/text_file.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"
#include "modules/device/backend.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

struct ProfileArguments {
  ConfigArguments config;
  std::string out;
  int seconds = 90;
};

constexpr int kBatches = 2;

/// The model of the processors; "" if it is not known.
std::string ProcessorName() {
  const std::string text = ReadTextFile("/proc/cpuinfo", std::size_t{1} << 20U, "").text;
  const auto key = text.find("model name");
  const auto colon = text.find(": ", key);
  if (key == std::string::npos || colon == std::string::npos) return "";
  return text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &utc)};
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs all probes in turn, a few steps of each, again and again until the time is over: the speed of a
/// machine that others use changes within seconds. Probes that come after the end of the time are left out.
std::vector<MeasuredProbe> RunProbes(const std::vector<Probe>& probes, int seconds) {
  constexpr int kRounds = 4 * kBatches;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<MeasuredProbe> measured;
  for (const Probe& probe : probes) {
    std::fprintf(stderr, "%s: ", probe.what.c_str());
    if (SecondsSince(begin) > seconds && !measured.empty()) {
      std::fprintf(stderr, "left out, %d s are over\n", seconds);
      continue;
    }
    const auto started = std::chrono::steady_clock::now();
    const auto plan = std::make_shared<const JobPlan>(probe.config);
    measured.push_back({probe.use, RunTraced(plan, kBatches, kRounds)});
    std::fprintf(stderr, "%.1f s\n", SecondsSince(started));
  }
  const double turn_s = SecondsSince(begin);
  const int turns = static_cast<int>((seconds - turn_s) / turn_s);
  for (int turn = 0; turn < turns && SecondsSince(begin) + turn_s < seconds; ++turn) {
    std::fprintf(stderr, "again, %d of %d\n", turn + 1, turns);
    for (MeasuredProbe& probe : measured) {
      AddTimes(RunTraced(probe.job.plan, kBatches, kRounds), probe.job);
    }
  }
  return measured;
}

void PrintFit(const DeviceModel& device) {
  Table table{{"module", "passes agree within", "at worst", "spread", "largest forward"}, {}};
  for (const auto& [name, module] : device.modules) {
    table.rows.push_back({name, Cell::Number(Percent(module.median_error)),
                          Cell::Number(Percent(module.worst_error)),
                          Cell::Number(Percent(module.spread)),
                          Cell::Number(Formatted("%.3g GFLOP", module.largest_flops * 1e-9))});
  }
  std::printf("%s", ToText(table).c_str());
}

/// Says what the devices here are, how much memory each has, and how many of them a node has.
void DescribeMachine(const std::vector<GpuFacts>& gpus, DeviceModel& device) {
  if (!gpus.empty()) {
    const auto number = static_cast<std::int64_t>(gpus.size());
    device.source =
        "measured on " + gpus.front().name + ", " + Counted(number, "GPU") + ", " + Today();
    device.memory_bytes = static_cast<double>(gpus.front().memory_bytes);
    device.topology.devices_per_node = static_cast<int>(number);
    return;
  }
  const int cores = UsableCores();
  device.source = "measured on " + ProcessorName() + ", " + Counted(cores, "core") + ", " + Today();
  device.memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(sysconf(_SC_PAGE_SIZE)) / std::max(cores, 1);
  constexpr int kAnyNumber = 65'536;  // ranks share the cores of a machine
  device.topology.devices_per_node = kAnyNumber;
}

}  // namespace

FittedDevice ProfiledHere(const Config& config, int seconds) {
  const auto gpus = config.cluster.backend == Backend::kCuda ? GpusHere() : std::vector<GpuFacts>();
  const auto probes = ProbesOf(config, static_cast<int>(gpus.size()));
  std::fprintf(stderr, "%zu probes, about %d s\n", probes.size(), seconds);
  FittedDevice fitted = FitDevice(RunProbes(probes, seconds));
  DeviceModel& device = fitted.device;
  DescribeMachine(gpus, device);
  return fitted;
}

namespace {

int Profile(const ProfileArguments& arguments) {
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  const auto begin = std::chrono::steady_clock::now();
  RefuseWhatCannotBeWritten(arguments.out);
  FittedDevice fitted = ProfiledHere(loaded.config, arguments.seconds);
  const DeviceModel& device = fitted.device;
  ProfileFacts facts{loaded.config.run.precision,
                     {{"configuration", loaded.config.run.name},
                      {"processor", ProcessorName()},
                      {"cores", std::to_string(UsableCores())},
                      {"date", Today()},
                      {"program", VersionText()}},
                     std::move(fitted.passes)};
  PrintFit(device);
  WriteInPlace(arguments.out, ProfileText(device, facts));
  std::printf("wrote %s in %.0f s; use it with troupe plan --device %s\n", arguments.out.c_str(),
              SecondsSince(begin), arguments.out.c_str());
  return kExitDone;
}

}  // namespace

void AddProfile(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "profile",
      "Time a few shapes of each module on the devices here, and fit what its operations take: "
      "the\n"
      "file of a device for troupe plan. Trains small jobs in this process: each module with 1, "
      "2,\n"
      "4, ... samples, in three stages, and with tp 2. Prints how well the fit agrees with each "
      "pass,\n"
      "and how far repetitions of one pass spread.\n"
      "Exit code: 0 done, 1 a job failed or the file cannot be written, 2 bad configuration or\n"
      "arguments.");
  auto arguments = std::make_shared<ProfileArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--out", arguments->out, "the file to write")
      ->type_name("FILE")
      ->check(WhyNoFile)
      ->required();
  verb->add_option("--seconds", arguments->seconds, "time to measure for; default 90")
      ->check(CLI::Range(5, 3600));
  SetCommand(*verb, command, [arguments] { return Profile(*arguments); });
}

}  // namespace troupe
