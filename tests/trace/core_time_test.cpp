#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "trace/core_clock.hpp"
#include "trace/recorder.hpp"
#include "trace/work_usage.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

std::int64_t OnCore(const CoreClock& clock) { return clock.Read().on_core_ns; }

/// Computes for `ns` of the thread's own time.
void Spin(const CoreClock& clock, std::int64_t ns) {
  const std::int64_t until = OnCore(clock) + ns;
  while (OnCore(clock) < until) {
  }
}

TEST_CASE("a record of work holds both times, and older records hold none", "[trace]") {
  TraceRecord record;
  CHECK_FALSE(CoreTimeOf(record).known());
  for (const CoreTime time : {CoreTime{5, 7}, CoreTime{0, 0}, CoreTime{12, CoreTime::kUnknown}}) {
    SetCoreTime(record, time);
    CHECK(CoreTimeOf(record) == time);
  }
  record.bytes = -3;  // a damaged file
  record.request = ~std::uint64_t{0};
  CHECK(CoreTimeOf(record) == CoreTime{});
}

TEST_CASE("times on a core and the cores of a process are read back from a trace", "[trace]") {
  RecorderOptions options;
  options.stages = {{"a", 0}};
  options.types = {"RunForward"};
  options.cores = 3;
  Recorder recorder(options);
  TraceRecord record;
  record.kind = RecordKind::kWork;
  record.work = static_cast<std::uint8_t>(WorkKind::kForward);
  record.stage = 0;
  record.begin_ns = 10;
  record.end_ns = 50;
  SetCoreTime(record, {25, 11});
  recorder.Note(record);
  const RunTrace trace = MergeTraces({recorder.Snapshot()}, "run");
  REQUIRE(trace.work.size() == 1);
  CHECK(trace.work[0].cores == CoreTime{25, 11});
  CHECK(trace.processes.at(0).cores == 3);
}

TEST_CASE("a thread that shares its core knows how long it had none", "[trace]") {
  CoreClock closed;
  CHECK(closed.Read() == CoreTime{});
  // Twice as many threads as cores, all of which compute.
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<bool> done = false;
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 2 * cores; ++i) {
    others.emplace_back([&] {
      while (!done) {
      }
    });
  }
  CoreTime spent;
  std::int64_t wall_ns = 0;
  std::jthread([&] {
    CoreClock clock;
    clock.Open();
    const CoreTime before = clock.Read();
    const auto begin = std::chrono::steady_clock::now();
    Spin(clock, 60'000'000);
    spent = clock.Since(before);
    wall_ns = (std::chrono::steady_clock::now() - begin) / 1ns;
  }).join();
  done = true;
  CHECK(spent.on_core_ns >= 60'000'000);
  if (spent.without_core_ns == CoreTime::kUnknown) {
    WARN("skipped: this kernel does not count waits for a core");
    return;
  }
  CHECK(spent.without_core_ns > 10'000'000);
  CHECK(std::abs(wall_ns - spent.on_core_ns - spent.without_core_ns) < wall_ns / 10);
}

TEST_CASE("a thread that sleeps is neither on a core nor without one", "[trace]") {
  CoreClock clock;
  clock.Open();
  const CoreTime before = clock.Read();
  std::this_thread::sleep_for(100ms);
  const CoreTime spent = clock.Since(before);
  CHECK(spent.on_core_ns < 20'000'000);
  CHECK(spent.without_core_ns < 50'000'000);
}

}  // namespace
}  // namespace troupe
