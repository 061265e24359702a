#include "tests/simulation/worlds.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "cluster/run_key.hpp"

namespace troupe::testing {
namespace {

constexpr std::size_t kSteps = 6;

/// The first faults are drawn before this time; an undisturbed job ends at about it.
constexpr SimTime kTimeOfFaults = Ms(950);
constexpr SimTime kTimeOfRecovery = Ms(4000);
/// In which a job must end, whatever happens to it. The longest faults and recoveries take 20 s together.
constexpr SimTime kLongestJob = Ms(40'000);

constexpr const char* kCommon = R"(schema = 1
[run]
name = "world"
dir = "runs"
steps = 6
[transport]
ucx_tls = "none"
spin_us = 0
[schedule]
micro_batch_size = 2
microbatches = 2
[trace]
messages = false
)";

/// Two replicas of an encoder whose passes take so long, in milliseconds.
std::string Vision(const std::string& forward, const std::string& backward) {
  return R"(
[modules.vision]
kind = "synthetic"
ranks = "0-1"
layout = { dp = 2 }
forward_ms = )" +
         forward + "\nbackward_ms = " + backward + R"(
[[edges]]
from = "vision"
to = "language"
credits = 4
)";
}

constexpr const char* kLanguage = R"(
[modules.language]
kind = "synthetic"
ranks = "2"
forward_ms = 4.0
backward_ms = 6.0
)";

constexpr const char* kCutLanguage = R"(
[modules.language]
kind = "synthetic"
ranks = "2-3"
layout = { pp = 2 }
forward_ms = 2.0
backward_ms = 3.0
)";

/// Steps of about half a second, so that a lost machine can come back while the others go on.
constexpr const char* kSlowLanguage = R"([modules.language]
kind = "synthetic"
ranks = "2-3"
layout = { dp = 2 }
forward_ms = 80.0
backward_ms = 120.0
)";

constexpr const char* kOneModule = R"(
[modules.language]
kind = "synthetic"
ranks = "0-2"
layout = { pp = 3 }
forward_ms = 3.0
backward_ms = 6.0
)";

int NumMachines(WorldKind kind) {
  return kind == WorldKind::kWide || kind == WorldKind::kElastic ? 4 : 3;
}

std::string Cluster(WorldKind kind) {
  const int num_machines = NumMachines(kind);
  std::string text = "[cluster]\nranks = " + std::to_string(num_machines) +
                     "\nheartbeat_ms = 100\nsuspect_after_s = 0.4\ndead_after_s = 1.0\n"
                     "join_timeout_s = 60\n";
  text += kind == WorldKind::kElastic ? "wait_for_spare_s = 3\nelastic = true\n"
                                      : "wait_for_spare_s = 60\n";
  for (int i = 0; i < num_machines; ++i) {
    text += "[[cluster.nodes]]\nname = \"n" + std::to_string(i) + "\"\naddress = \"10.0.0." +
            std::to_string(i + 1) + "\"\ndevices = 1\n";
  }
  return text;
}

/// Complete steps that may be repeated after one loss.
std::int64_t MostLostSteps(WorldKind kind) {
  switch (kind) {
    case WorldKind::kMirrors:
    case WorldKind::kSpare:
    case WorldKind::kElastic:
      return 1;
    case WorldKind::kWide:
      return 2;
    case WorldKind::kDisk:
    case WorldKind::kFullDisk:
    case WorldKind::kPipeline:
      return static_cast<std::int64_t>(kSteps);
  }
  return 0;
}

std::string ConfigOf(WorldKind kind) {
  const std::string common = kCommon + Cluster(kind);
  switch (kind) {
    case WorldKind::kDisk:
    case WorldKind::kFullDisk:
      return common + Vision("3.0", "5.0") + kLanguage + "[checkpoint]\nevery = 2\nkeep = 2\n";
    case WorldKind::kMirrors:
    case WorldKind::kSpare:
      return common + Vision("3.0", "5.0") + kLanguage +
             "[checkpoint]\nevery = 4\nkeep = 2\nreplicas = 1\n";
    case WorldKind::kElastic:
      return common + Vision("60.0", "100.0") + kSlowLanguage +
             "[checkpoint]\nevery = 2\nkeep = 2\nreplicas = 1\n";
    case WorldKind::kPipeline:
      return common + kOneModule + "[checkpoint]\nevery = 2\nkeep = 2\nasync = false\n";
    case WorldKind::kWide:
      return common + Vision("3.0", "5.0") + kCutLanguage +
             "[checkpoint]\nevery = 4\nkeep = 2\nreplicas = 2\nmirror_every = 2\n";
  }
  return common;
}

std::string Milliseconds(SimTime time) { return std::to_string(time / 1'000'000) + " ms"; }

void CutPath(JobWorld& world, int place, int other, SimTime time, SimTime length) {
  const bool both = world.kernel().Draw(2) == 0;
  const auto change = [&world, place, other, both](bool cut) {
    world.CutPath(place, other, cut);
    if (both) world.CutPath(other, place, cut);
  };
  world.At(time,
           "cut n" + std::to_string(place) + (both ? " <-> n" : " -> n") + std::to_string(other) +
               " for " + Milliseconds(length),
           [change] { change(true); });
  world.kernel().At(time + length, [change] { change(false); });
}

void DrawFault(JobWorld& world, int num_places, SimTime time) {
  Kernel& kernel = world.kernel();
  const int place = static_cast<int>(kernel.Draw(num_places));
  const int other = (place + 1 + static_cast<int>(kernel.Draw(num_places - 1))) % num_places;
  const SimTime length = Ms(10) + kernel.Draw(Ms(3000));
  const std::string name = "n" + std::to_string(place);
  switch (kernel.Draw(8)) {
    case 0:
    case 1:
      return world.At(time, "kill " + name, [&world, place] { world.Kill(place); });
    case 2:
    case 3: {
      const std::int64_t call = kernel.Draw(200);
      return world.At(time, "after " + std::to_string(call) + " more calls kill " + name,
                      [&world, place, call] { world.DieAfter(place, call); });
    }
    case 4:
      return CutPath(world, place, other, time, length);
    case 5:
      return world.At(time, "cut the power of " + name + " for " + Milliseconds(length),
                      [&world, place, length] { world.CutPower(place, length); });
    case 6: {
      world.At(time, "slow down the network for " + Milliseconds(length),
               [&world] { world.network().most_delay = Ms(40); });
      return kernel.At(time + length, [&world] { world.network().most_delay = Ms(0.3); });
    }
    default:
      return world.At(time, "stop " + name + " for " + Milliseconds(length),
                      [&world, place, length] { world.Stop(place, length); });
  }
}

/// A machine loses its power for longer than the others wait, or for good.
void LoseMachine(JobWorld& world, int num_places) {
  Kernel& kernel = world.kernel();
  const int place = 1 + static_cast<int>(kernel.Draw(num_places - 1));
  const std::string name = "n" + std::to_string(place);
  const SimTime time = Ms(600) + kernel.Draw(Ms(3000));
  if (kernel.Draw(3) == 0) {
    return world.At(time, "remove " + name, [&world, place] { world.Remove(place); });
  }
  const SimTime length = Ms(1000) + kernel.Draw(Ms(7000));
  world.At(time, "cut the power of " + name + " for " + Milliseconds(length),
           [&world, place, length] { world.CutPower(place, length); });
}

/// Whether a job had the losses of the undisturbed one. One that goes on with other microbatches adds
/// them up in another order.
bool AreLosses(const std::vector<double>& losses, const std::vector<double>& expected,
               WorldKind kind) {
  const double tolerance = kind == WorldKind::kElastic ? 1e-12 : 0.0;
  return std::ranges::equal(losses, expected, [&](double loss, double of) {
    return std::abs(loss - of) <= tolerance * std::abs(of);
  });
}

}  // namespace

WorldKind KindOf(std::uint64_t seed) { return static_cast<WorldKind>(seed % kNumWorldKinds); }

void DrawFaults(JobWorld& world, WorldKind kind) {
  Kernel& kernel = world.kernel();
  const bool has_spare = kind == WorldKind::kSpare;
  const int num_places = world.num_places() - (has_spare ? 1 : 0);
  if (has_spare) {
    const int place = 1 + static_cast<int>(kernel.Draw(num_places - 1));
    world.At(Ms(600) + kernel.Draw(kTimeOfFaults / 2), "remove n" + std::to_string(place),
             [&world, place] { world.Remove(place); });
  }
  const bool is_elastic = kind == WorldKind::kElastic;
  if (is_elastic) LoseMachine(world, num_places);
  if (is_elastic && kernel.Draw(4) == 0) LoseMachine(world, num_places);
  const bool is_full = kind == WorldKind::kFullDisk;
  if (is_full) {
    const SimTime length = Ms(1) + kernel.Draw(Ms(400));
    world.At(kernel.Draw(kTimeOfFaults), "fill the disk for " + Milliseconds(length),
             [&world, length] { world.FillDisk(length); });
  }
  const std::int64_t count = (has_spare || is_elastic || is_full ? 0 : 1) + kernel.Draw(3);
  const SimTime first = kernel.Draw(kTimeOfFaults);
  for (std::int64_t i = 0; i < count; ++i) {
    // Later faults may meet the recovery from the first one.
    const bool is_later = i > 0 && kernel.Draw(2) == 0;
    DrawFault(world, num_places,
              i == 0     ? first
              : is_later ? first + kernel.Draw(kTimeOfRecovery)
                         : kernel.Draw(kTimeOfFaults));
  }
}

Worlds::Worlds() {
  // In memory, and with a name that has always the same length.
  directory_ = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  directory_ += "/troupe_world_XXXXXX";
  if (mkdtemp(directory_.data()) == nullptr) throw std::runtime_error("no folder for worlds");
  RunKey::Generate().WriteFile(Path("run.key"));
}

Worlds::~Worlds() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

WorldEnd Worlds::Run(std::uint64_t seed, WorldKind kind,
                     const std::function<void(JobWorld&)>& plan) {
  WorldEnd end = RunOn(seed, kind, plan);
  std::filesystem::remove_all(Path("run"));
  return end;
}

WorldEnd Worlds::RunOn(std::uint64_t seed, WorldKind kind,
                       const std::function<void(JobWorld&)>& plan) {
  WorldJob job;
  job.config = Path(std::to_string(static_cast<int>(kind)) + ".toml");
  if (!std::filesystem::exists(job.config)) std::ofstream(job.config) << ConfigOf(kind);
  job.key_file = Path("run.key");
  job.into = Path("run");
  job.num_processes = NumMachines(kind);
  if (kind == WorldKind::kSpare) job.num_spares = 1;
  return InOwnProcess([&] { return JobWorld(job, seed).Run(plan); });
}

void Worlds::GoOnWithSpace(std::uint64_t seed, WorldKind kind, WorldEnd& failed) {
  if (failed.cause.find(std::strerror(ENOSPC)) == std::string::npos) {
    failed.fault = "the job failed: " + failed.cause;
    return;
  }
  const WorldEnd end = RunOn(seed, kind, [](JobWorld&) {});
  failed.fault = end.fault;
  failed.losses = end.losses;
  failed.digest ^= end.digest;
  failed.took = end.took;  // one that fails may first wait for a process that has failed by itself
  failed.starts += end.starts;
}

WorldEnd Worlds::RunSeed(std::uint64_t seed) {
  const WorldKind kind = KindOf(seed);
  std::vector<double>& losses = losses_[kind];
  if (losses.empty()) {
    const WorldEnd undisturbed = Run(1, kind, [](JobWorld&) {});
    losses = undisturbed.losses;
    if (!undisturbed.fault.empty() || losses.size() != kSteps) {
      throw std::runtime_error("the undisturbed job: " + undisturbed.fault);
    }
  }
  WorldEnd end = RunOn(seed, kind, [kind](JobWorld& world) { DrawFaults(world, kind); });
  if (end.fault.empty() && end.has_failed) GoOnWithSpace(seed, kind, end);
  std::filesystem::remove_all(Path("run"));
  if (end.fault.empty() && !AreLosses(end.losses, losses, kind)) {
    end.fault =
        end.losses.size() == losses.size()
            ? "other losses than those of the undisturbed job"
            : std::to_string(end.losses.size()) + " steps, expected " + std::to_string(kSteps);
  }
  if (end.took > kLongestJob && end.fault.empty()) end.fault = "it took too long";
  if (end.lost_processes <= 1 && end.lost_steps > MostLostSteps(kind) && end.fault.empty()) {
    end.fault = std::to_string(end.lost_steps) + " complete steps were repeated after one loss";
  }
  return end;
}

}  // namespace troupe::testing
