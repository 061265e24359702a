// A rank's queue on a stream, on devices that the host plays (tests/gpu/emulated).
#include "modules/device/stream_queue.hpp"

#include <chrono>
#include <cstring>
#include <future>
#include <numeric>

#include <catch2/catch.hpp>

#include "gpu/copies.hpp"
#include "gpu/memory.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

using emulated::Machine;

/// A queue whose memory is a pool of its device.
struct Rank {
  explicit Rank(int device)
      : pool(std::make_shared<gpu::MemoryPool>(device)),
        queue(device,
              [pool = pool](std::size_t bytes, gpu::Stream& stream) {
                return pool->Allocate(bytes, stream);
              },
              {}) {}

  /// Ends the open piece and waits for it: its error.
  std::string RunToEnd() {
    std::promise<std::string> ended;
    queue.End([&](const std::string& error) { ended.set_value(error); });
    return ended.get_future().get();
  }

  std::shared_ptr<gpu::MemoryPool> pool;
  StreamQueue queue;
};

Buffer HostRows(std::int64_t first, std::int64_t rows) {
  Buffer buffer = Buffer::Allocate({rows, 2}, DType::kInt64);
  std::iota(buffer.as<std::int64_t>(), buffer.as<std::int64_t>() + 2 * rows, 100 * first);
  return buffer;
}

/// What rows on a device hold, copied in the order of `stream`.
std::vector<std::int64_t> Values(const Buffer& rows, const gpu::Stream& stream) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows.num_elements()));
  gpu::Copy(stream, values.data(), rows.data(), rows.num_bytes(), gpu::Way::kToHost);
  stream.Synchronize();
  return values;
}

std::vector<std::int64_t> ValuesOf(const Buffer& host) {
  return {host.as<std::int64_t>(), host.as<std::int64_t>() + host.num_elements()};
}

}  // namespace

TEST_CASE("rows of the host and of several devices become one piece on a rank's device",
          "[device]") {
  Machine machine({.num_devices = 2, .max_delay = std::chrono::microseconds(300)});
  {
    Rank first(0);
    Rank second(1);
    first.queue.Begin("first");
    const Buffer there = first.queue.Here(HostRows(1, 3));
    REQUIRE(there.device() == 0);
    REQUIRE(first.RunToEnd().empty());  // who names a tensor says that it is complete
    first.queue.TakeTimes();

    second.queue.Begin("second");
    Buffer parts = ConcatenateRows({there.Rows(1, 3), HostRows(2, 1), there.Rows(0, 1)});
    REQUIRE(parts.parts().size() == 3);
    const Buffer whole = second.queue.Here(parts);
    CHECK(whole.device() == 1);
    CHECK(whole.parts().empty());
    CHECK(Values(whole, second.queue.stream()) ==
          std::vector<std::int64_t>{102, 103, 104, 105, 200, 201, 100, 101});
    REQUIRE(second.RunToEnd().empty());
    second.queue.TakeTimes();
    CHECK_FALSE(second.queue.Here(Buffer()).defined());
  }
  CHECK(machine.fault() == "");
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("rows that a rank reads outlive their last owner until the work has run", "[device]") {
  // Two ranks share a device. The giver lets go of its rows as soon as the taker has queued what
  // reads them, and its own stream, which runs ahead, could use the memory again at once.
  Machine machine({.num_devices = 1, .max_delay = std::chrono::microseconds(300)});
  {
    Rank giver(0);
    Rank taker(0);
    for (int round = 0; round < 50; ++round) {
      const Buffer rows = HostRows(round, 64);
      giver.queue.Begin("give");
      Buffer given = giver.queue.Here(rows);
      REQUIRE(giver.RunToEnd().empty());
      giver.queue.TakeTimes();

      taker.queue.Begin("take");
      Buffer mine = taker.queue.Here(given);
      REQUIRE(mine.data() == given.data());  // no copy on one device
      Buffer result = taker.queue.Allocate(rows.shape(), rows.dtype());
      gpu::Copy(taker.queue.stream(), result.data(), mine.data(), mine.num_bytes(),
                gpu::Way::kOnDevice);
      given = Buffer();
      mine = Buffer();
      giver.queue.Begin("reuse");
      const Buffer other = giver.queue.Here(HostRows(-7, 64));
      REQUIRE(giver.RunToEnd().empty());
      giver.queue.TakeTimes();
      REQUIRE(taker.RunToEnd().empty());
      taker.queue.TakeTimes();
      REQUIRE(Values(result, taker.queue.stream()) == ValuesOf(rows));
    }
  }
  CHECK(machine.fault() == "");
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("times of queued work follow each other by the host's clock", "[device]") {
  Machine machine({.num_devices = 1});
  {
    Rank rank(0);
    const std::int64_t before_ns = NowNs();
    std::promise<void> both;
    for (int i = 0; i < 2; ++i) {
      rank.queue.Begin("sleep");
      machine.InTurn(rank.queue.stream().get(),
                     [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
      rank.queue.End([&both, i](const std::string&) {
        if (i == 1) both.set_value();
      });
    }
    both.get_future().get();
    const WorkTimes first = rank.queue.TakeTimes();
    const WorkTimes second = rank.queue.TakeTimes();
    CHECK(first.begin_ns >= before_ns);
    CHECK(first.end_ns - first.begin_ns >= 4'900'000);
    CHECK(second.begin_ns >= first.end_ns);
    CHECK(second.end_ns - second.begin_ns >= 4'900'000);
    CHECK(second.end_ns <= NowNs());
  }
  CHECK(machine.fault() == "");
}

TEST_CASE("a device that fails says so for what was queued on it", "[device]") {
  Machine machine({.num_devices = 1});
  {
    Rank rank(0);
    std::promise<void> queued;  // a device that fails before that refuses the End itself
    std::promise<std::string> ended;
    rank.queue.Begin("work");
    machine.InTurn(rank.queue.stream().get(), [all = queued.get_future().share()] { all.wait(); });
    machine.BreakInTurn(rank.queue.stream().get());
    rank.queue.End([&](const std::string& error) { ended.set_value(error); });
    queued.set_value();
    CHECK_THAT(ended.get_future().get(), Catch::Matchers::Contains("illegal"));
    const WorkTimes times = rank.queue.TakeTimes();
    CHECK(times.end_ns >= times.begin_ns);
    CHECK_THROWS_WITH(rank.queue.Synchronize(), Catch::Matchers::Contains("illegal"));
    CHECK_THROWS_WITH(rank.queue.Begin("more"), Catch::Matchers::Contains("illegal"));
  }
}

}  // namespace troupe
