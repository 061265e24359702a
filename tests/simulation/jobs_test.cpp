// Whole jobs in simulated worlds.
//
//   test_simulation                                       500 worlds
//   TROUPE_SEEDS=100000 test_simulation "[.seeds]"        as many as wanted
//   TROUPE_SEED=17 test_simulation "[.seeds]"             one; with TROUPE_WORLD_EVENTS=1 its events
//   tests/simulation/planted/run.sh                       the worlds find planted bugs
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/simulation/worlds.hpp"

namespace troupe::testing {
namespace {

void Nothing(JobWorld&) {}

/// Calls `event` when the process of a place, which has started before, has ended.
void WhenEnded(JobWorld& world, int place, const std::function<void()>& event,
               bool has_started = false) {
  const bool runs = world.ProcessOf(place) != nullptr;
  if (has_started && !runs) return event();
  world.kernel().After(Ms(0.2), [&world, place, event, has_started, runs] {
    WhenEnded(world, place, event, has_started || runs);
  });
}

std::int64_t NumberIn(const char* variable, std::int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

void Print(std::int64_t seed, const WorldEnd& end) {
  std::cerr << "seed " << seed << ": " << end.faults << " -> "
            << (end.fault.empty() ? "right" : end.fault) << " (" << end.losses.size() << " steps, "
            << end.starts << " starts, " << end.lost_steps << " lost steps, "
            << end.took / 1'000'000 << " ms there)\n";
}

constexpr std::int64_t kProgressEvery = 1000;

/// Returns the number of worlds that ended wrongly.
int RunSeeds(std::int64_t first, std::int64_t count) {
  Worlds worlds;
  int wrong = 0;
  for (std::int64_t seed = first; seed < first + count; ++seed) {
    const WorldEnd end = worlds.RunSeed(static_cast<std::uint64_t>(seed));
    if (!end.fault.empty()) ++wrong;
    if (wrong > 0 && std::getenv("TROUPE_UNTIL_WRONG") != nullptr) {
      Print(seed, end);
      break;
    }
    if (!end.fault.empty() || count == 1) Print(seed, end);
    const std::int64_t done = seed - first + 1;
    if (done % kProgressEvery == 0) {
      std::cerr << done << " of " << count << " worlds, " << wrong << " of them wrong\n";
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("a simulated world runs the same events again", "[simulation]") {
  Worlds worlds;
  const WorldEnd first = worlds.Run(1, WorldKind::kMirrors, Nothing);
  CHECK(first.fault == "");
  CHECK(first.losses.size() == 6);
  CHECK(worlds.Run(1, WorldKind::kMirrors, Nothing).digest == first.digest);
  const WorldEnd other = worlds.Run(2, WorldKind::kMirrors, Nothing);
  CHECK(other.digest != first.digest);
  CHECK(other.losses == first.losses);
  const WorldEnd disturbed = worlds.RunSeed(3);
  CHECK(worlds.RunSeed(3).digest == disturbed.digest);
}

TEST_CASE("a process that comes back when its place is taken waits as a spare", "[simulation]") {
  Worlds worlds;
  const WorldEnd end = worlds.Run(1219, WorldKind::kSpare, [](JobWorld& world) {
    world.At(Ms(700), "cut n1 <-> n0", [&world] { world.CutPaths(1, true); });
    world.At(Ms(3600), "mend it", [&world] { world.CutPaths(1, false); });
    world.At(Ms(3600), "remove n2", [&world] { world.Remove(2); });
  });
  INFO(end.faults);
  CHECK(end.fault == "");
  CHECK(end.losses.size() == 6);
  CHECK(end.starts == 4);  // nothing was started again
}

TEST_CASE("a job goes on without a machine, and with it again", "[simulation]") {
  Worlds worlds;
  const WorldEnd end = worlds.Run(1, WorldKind::kElastic, [](JobWorld& world) {
    world.At(Ms(1000), "cut the power of n2", [&world] { world.CutPower(2, Ms(4500)); });
  });
  CHECK(end.fault == "");
  CHECK(end.losses.size() == 6);
  CHECK(end.reduced == 1);
  CHECK(end.whole_again == 1);
}

TEST_CASE("a process 0 that is lost while machines are away finds out again who is there",
          "[simulation]") {
  Worlds worlds;
  const WorldEnd end = worlds.Run(1, WorldKind::kElastic, [](JobWorld& world) {
    for (const int place : {1, 3}) {
      world.At(Ms(1000), "remove", [&world, place] { world.Remove(place); });
    }
    world.At(Ms(6000), "kill n0", [&world] { world.Kill(0); });
  });
  CHECK(end.fault == "");
  CHECK(end.losses.size() == 6);
  CHECK(end.reduced == 2);
  CHECK(end.whole_again == 0);
}

TEST_CASE("a process 0 that is lost when all steps are done has nothing to wait for",
          "[simulation]") {
  Worlds worlds;
  const WorldEnd end = worlds.Run(1, WorldKind::kDisk, [](JobWorld& world) {
    WhenEnded(world, 1, [&world] { world.Kill(0); });
  });
  CHECK(end.fault == "");
  CHECK(end.losses.size() == 6);
  CHECK(end.starts == 4);
  CHECK(end.took < Ms(20'000));
}

TEST_CASE("a process that has missed the end of the job does not make it fail", "[simulation]") {
  Worlds worlds;
  const WorldEnd end = worlds.Run(1, WorldKind::kDisk, [](JobWorld& world) {
    WhenEnded(world, 2, [&world] {
      world.CutPaths(1, true);
      world.kernel().After(Ms(1100), [&world] { world.CutPaths(1, false); });
    });
  });
  CHECK(end.fault == "");
  CHECK(end.losses.size() == 6);
}

TEST_CASE("jobs that lose processes, machines and paths end as undisturbed ones", "[simulation]") {
  CHECK(RunSeeds(1, 500) == 0);
}

TEST_CASE("as many of these worlds as wanted", "[.seeds]") {
  const std::int64_t one = NumberIn("TROUPE_SEED", 0);
  CHECK(RunSeeds(one > 0 ? one : NumberIn("TROUPE_FIRST", 1),
                 one > 0 ? 1 : NumberIn("TROUPE_SEEDS", 1000)) == 0);
}

}  // namespace troupe::testing
