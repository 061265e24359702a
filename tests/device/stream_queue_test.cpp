// A rank's queue on a stream, on devices that the host plays (tests/gpu/emulated).
#include "modules/device/stream_queue.hpp"

#include <chrono>
#include <cstring>
#include <future>
#include <numeric>

#include <catch2/catch.hpp>

#include "gpu/copies.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/gpu/memory_pool.hpp"
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
    first.queue.Begin("first", Lane::kCompute);
    const Buffer there = first.queue.Here(HostRows(1, 3));
    REQUIRE(there.device() == 0);
    REQUIRE(first.RunToEnd().empty());  // who names a tensor says that it is complete
    first.queue.TakeTimes(Lane::kCompute);

    second.queue.Begin("second", Lane::kCompute);
    Buffer parts = ConcatenateRows({there.Rows(1, 3), HostRows(2, 1), there.Rows(0, 1)});
    REQUIRE(parts.parts().size() == 3);
    const Buffer whole = second.queue.Here(parts);
    CHECK(whole.device() == 1);
    CHECK(whole.parts().empty());
    CHECK(Values(whole, second.queue.stream(Lane::kCompute)) ==
          std::vector<std::int64_t>{102, 103, 104, 105, 200, 201, 100, 101});
    REQUIRE(second.RunToEnd().empty());
    second.queue.TakeTimes(Lane::kCompute);
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
      giver.queue.Begin("give", Lane::kCompute);
      Buffer given = giver.queue.Here(rows);
      REQUIRE(giver.RunToEnd().empty());
      giver.queue.TakeTimes(Lane::kCompute);

      taker.queue.Begin("take", Lane::kCompute);
      Buffer mine = taker.queue.Here(given);
      REQUIRE(mine.data() == given.data());  // no copy on one device
      Buffer result = taker.queue.Allocate(rows.shape(), rows.dtype());
      gpu::Copy(taker.queue.stream(Lane::kCompute), result.data(), mine.data(), mine.num_bytes(),
                gpu::Way::kOnDevice);
      given = Buffer();
      mine = Buffer();
      giver.queue.Begin("reuse", Lane::kCompute);
      const Buffer other = giver.queue.Here(HostRows(-7, 64));
      REQUIRE(giver.RunToEnd().empty());
      giver.queue.TakeTimes(Lane::kCompute);
      REQUIRE(taker.RunToEnd().empty());
      taker.queue.TakeTimes(Lane::kCompute);
      REQUIRE(Values(result, taker.queue.stream(Lane::kCompute)) == ValuesOf(rows));
    }
  }
  CHECK(machine.fault() == "");
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("any number of parts become one piece, whatever they begin at", "[device]") {
  Machine machine({.num_devices = 1, .max_delay = std::chrono::microseconds(300)});
  {
    Rank rank(0);
    rank.queue.Begin("parts", Lane::kCompute);
    const std::int64_t num_parts = GENERATE(2, 128, 129, 300);
    const Buffer there = rank.queue.Here(HostRows(1, 2 * num_parts));
    std::vector<Buffer> parts;
    std::vector<std::int64_t> expected;
    const auto all = ValuesOf(HostRows(1, 2 * num_parts));
    for (std::int64_t i = num_parts; i-- > 0;) {  // backwards, of 0, 1 and 2 rows
      const std::int64_t rows = i % 3;
      parts.push_back(there.Rows(2 * i, 2 * i + rows));
      expected.insert(expected.end(), all.begin() + 4 * i, all.begin() + 4 * i + 2 * rows);
    }
    const Buffer whole = rank.queue.Here(ConcatenateRows(parts));
    CHECK(Values(whole, rank.queue.stream(Lane::kCompute)) == expected);
    REQUIRE(rank.RunToEnd().empty());
    rank.queue.TakeTimes(Lane::kCompute);
  }
  CHECK(machine.fault() == "");
}

TEST_CASE("rows that were neighbours are neighbours where they are kept", "[device]") {
  Machine machine({.num_devices = 1});
  {
    Rank rank(0);
    rank.queue.Begin("work", Lane::kCompute);
    const Buffer rows = rank.queue.Here(HostRows(1, 8));
    const std::vector<Buffer> halves = {rank.queue.Here(rows.Rows(0, 5)),
                                        rank.queue.Here(rows.Rows(5, 8))};
    const Buffer whole = ConcatenateRows(halves);
    CHECK(whole.parts().empty());
    CHECK(whole.data() == rows.data());
    REQUIRE(rank.RunToEnd().empty());
    rank.queue.TakeTimes(Lane::kCompute);
  }
  CHECK(machine.fault() == "");
}

TEST_CASE("work on one lane does not wait for the other", "[device]") {
  Machine machine({.num_devices = 1, .max_delay = std::chrono::microseconds(300)});
  {
    Rank rank(0);
    std::promise<void> release;
    std::promise<std::string> computed;
    rank.queue.Begin("long", Lane::kCompute);
    Buffer kept = rank.queue.Here(rank.queue.Here(HostRows(3, 4)));
    machine.InTurn(rank.queue.stream(Lane::kCompute).get(),
                   [all = release.get_future().share()] { all.wait(); });
    Buffer copy = rank.queue.Allocate(kept.shape(), kept.dtype());
    gpu::Copy(rank.queue.stream(Lane::kCompute), copy.data(), kept.data(), kept.num_bytes(),
              gpu::Way::kOnDevice);
    rank.queue.End([&](const std::string& error) { computed.set_value(error); });
    // What only the first piece uses is let go of while the second is open, and stays.
    rank.queue.Begin("sum", Lane::kCollectives);
    kept = Buffer();
    const Buffer sums = rank.queue.Here(HostRows(5, 2));
    CHECK(rank.RunToEnd().empty());
    CHECK(Values(sums, rank.queue.stream(Lane::kCollectives)) == ValuesOf(HostRows(5, 2)));
    rank.queue.TakeTimes(Lane::kCollectives);
    auto ended = computed.get_future();
    CHECK(ended.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    release.set_value();
    CHECK(ended.get().empty());
    rank.queue.TakeTimes(Lane::kCompute);
    CHECK(Values(copy, rank.queue.stream(Lane::kCompute)) == ValuesOf(HostRows(3, 4)));
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
      rank.queue.Begin("sleep", Lane::kCompute);
      machine.InTurn(rank.queue.stream(Lane::kCompute).get(),
                     [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
      rank.queue.End([&both, i](const std::string&) {
        if (i == 1) both.set_value();
      });
    }
    both.get_future().get();
    const WorkTimes first = rank.queue.TakeTimes(Lane::kCompute);
    const WorkTimes second = rank.queue.TakeTimes(Lane::kCompute);
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
    rank.queue.Begin("work", Lane::kCompute);
    machine.InTurn(rank.queue.stream(Lane::kCompute).get(),
                   [all = queued.get_future().share()] { all.wait(); });
    machine.BreakInTurn(rank.queue.stream(Lane::kCompute).get());
    rank.queue.End([&](const std::string& error) { ended.set_value(error); });
    queued.set_value();
    CHECK_THAT(ended.get_future().get(), Catch::Matchers::Contains("illegal"));
    const WorkTimes times = rank.queue.TakeTimes(Lane::kCompute);
    CHECK(times.end_ns >= times.begin_ns);
    CHECK_THROWS_WITH(rank.queue.Synchronize(), Catch::Matchers::Contains("illegal"));
    CHECK_THROWS_WITH(rank.queue.Begin("more", Lane::kCompute),
                      Catch::Matchers::Contains("illegal"));
  }
}

}  // namespace troupe
