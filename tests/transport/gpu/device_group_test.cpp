// Groups on devices: which kind is chosen, and that all kinds give the results of a local group.
#include <cmath>
#include <cstring>
#include <future>

#include <catch2/catch.hpp>

#include "gpu/kernels/bfloat16.hpp"
#include "tests/transport/gpu/known_on_device.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;
using namespace std::chrono_literals;

namespace {

/// What a crew says of itself, the same on all members.
std::string DescriptionOf(DeviceCrew crew) {
  std::vector<std::string> all(crew.devices.size());
  const auto outcomes =
      crew.Run([&](DeviceRank& it) { all[static_cast<std::size_t>(it.rank)] = it.description; });
  CHECK(outcomes == All(static_cast<int>(all.size()), "ok"));
  CHECK(all == std::vector<std::string>(all.size(), all[0]));
  return all[0];
}

}  // namespace

TEST_CASE("ranks that share a device copy on it, others go through pinned memory") {
  Machine machine;
  CHECK(DescriptionOf({{1, 1, 1}}) ==
        "tensor group of vision: copies on device 1, shared by rank 0 to rank 2");
  CHECK(DescriptionOf({{0, 1}}) ==
        "tensor group of vision: through pinned memory over rank 0 to rank 1, since no library "
        "between devices is built in");
  CHECK(DescriptionOf({{0, 1, 0}}) ==
        "tensor group of vision: through pinned memory over rank 0 to rank 2, since rank 0 and "
        "rank 2 share a device");
  CHECK(DescriptionOf({{1, 1}, {0, 1}}) ==
        "tensor group of vision: through pinned memory over rank 0 to rank 1, since rank 0 and "
        "rank 1 share a device");
  CHECK(DescriptionOf({{1}}) == "tensor group of vision: only one member, rank 0");
  CHECK(machine.fault().empty());
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("every kind of group has the results of a local group, in stream order") {
  const auto delay = GENERATE(0us, 200us);
  const std::vector<int> devices =
      GENERATE(std::vector<int>{0}, std::vector<int>{0, 0}, std::vector<int>{1, 1, 1, 1, 1},
               std::vector<int>{0, 1}, std::vector<int>{0, 1, 0});
  Machine machine({.max_delay = delay, .seed = static_cast<unsigned>(devices.size())});
  const auto outcomes = DeviceCrew{devices}.Run([&](DeviceRank& it) { RunKnown(it, 7, 60); });
  CHECK(outcomes == All(static_cast<int>(devices.size()), "ok"));
  CHECK(machine.fault().empty());
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("sums on a shared device have the bits of a local group's") {
  Machine machine({.max_delay = 50us});
  const std::int64_t count = 3001;
  const auto draw = [&](int rank) {
    std::mt19937 random(static_cast<unsigned>(rank) + 5);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
    return values;
  };
  const auto as_bfloat16 = [](const std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (const float value : values) bits.push_back(BFloat16(value).bits);
    return bits;
  };
  std::vector<float> expected;
  std::vector<std::uint16_t> expected_bits;
  RunGroup(3, [&](Communicator& group) {
    auto values = draw(group.rank());
    auto bits = as_bfloat16(values);
    group.AllReduce(values.data(), count, DType::kFloat32, ReduceOp::kSum);
    group.AllReduce(bits.data(), count, DType::kBFloat16, ReduceOp::kSum);
    if (group.rank() != 0) return;
    expected = values;
    expected_bits = bits;
  });
  const auto outcomes = DeviceCrew{{0, 0, 0}}.Run([&](DeviceRank& it) {
    ThroughDevice group(it.group, it.stream, it.pool);
    auto values = draw(it.rank);
    auto bits = as_bfloat16(values);
    group.AllReduce(values.data(), count, DType::kFloat32, ReduceOp::kSum);
    group.AllReduce(bits.data(), count, DType::kBFloat16, ReduceOp::kSum);
    if (values != expected) throw std::runtime_error("other floats");
    if (bits != expected_bits) throw std::runtime_error("other bfloat16");
  });
  CHECK(outcomes == All(3, "ok"));
  CHECK(machine.fault().empty());
}

TEST_CASE("members of a shared device meet while they queue: none waits for the device") {
  Machine machine;
  std::promise<void> let_go;
  const auto outcomes = DeviceCrew{{0, 0}}.Run([&](DeviceRank& it) {
    const auto there =
        ToDevice(it.pool, it.stream, std::vector<float>{static_cast<float>(it.rank + 1)});
    if (it.rank == 0)
      machine.InTurn(it.stream.get(), [wait = let_go.get_future().share()] { wait.wait(); });
    // The stream of rank 0 stands still, and both come back from three calls.
    it.group.AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
    it.group.Barrier();
    it.group.AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
    int control = it.rank;
    it.group.Broadcast(&control, sizeof control, 1);
    if (it.rank == 0) let_go.set_value();
    if (FromDevice<float>(it.stream, there.get(), 1)[0] != 6.0F || control != 1)
      throw std::runtime_error("a wrong sum");
  });
  CHECK(outcomes == All(2, "ok"));
  CHECK(machine.fault().empty());
}

TEST_CASE("memory of both sides in one call is refused on all members, which are named") {
  Machine machine;
  const auto outcomes = DeviceCrew{{0, 0, 0}}.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(4, it.stream);
    float here = 1.0F;
    it.group.AllReduce(it.rank == 1 ? &here : static_cast<float*>(there.get()), 1, DType::kFloat32,
                       ReduceOp::kSum);
  });
  CHECK(outcomes == All(3,
                        "logic error: tensor group of vision: all-reduce of 1 float32 (sum): "
                        "expected one kind of memory, got rank 1 with memory of the host, rank 0 "
                        "with memory of the device"));
}

TEST_CASE("different calls, and memory of another device, are reported to all") {
  Machine machine;
  auto outcomes = DeviceCrew{{0, 0}}.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    if (it.rank == 0) return it.group.Barrier();
    it.group.Broadcast(there.get(), 64, 0);
  });
  CHECK(outcomes == All(2,
                        "logic error: local group of 2: member 0 called barrier, member 1 called "
                        "broadcast of 64 bytes from member 0"));
  outcomes = DeviceCrew{{0, 0}}.Run([&](DeviceRank& it) {
    const gpu::Stream other(1);
    gpu::MemoryPool pool(1);
    const auto far = pool.Allocate(8, other);
    const auto near = it.pool.Allocate(8, it.stream);
    it.group.AllReduce(it.rank == 1 ? far.get() : near.get(), 2, DType::kFloat32, ReduceOp::kSum);
  });
  CHECK(outcomes == All(2,
                        "invalid argument: local group of 2: member 1: all-reduce of 2 float32 "
                        "(sum): expected memory of device 0 or of the host, got memory of device "
                        "1"));
}

TEST_CASE("a device that fails ends the job with the group, the member and the device's words") {
  const std::vector<int> devices = GENERATE(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 1});
  Machine machine;
  DeviceCrew crew{devices};
  const auto outcomes = crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(40000, it.stream);
    it.group.AllReduce(there.get(), 10000, DType::kFloat32, ReduceOp::kSum);
    if (it.rank == 0) machine.Break(0);
    for (;;) it.group.AllReduce(there.get(), 10000, DType::kFloat32, ReduceOp::kSum);
  });
  CHECK_THAT(crew.abort->cause(), Catch::StartsWith("tensor group of vision: rank "));
  CHECK_THAT(crew.abort->cause(), Catch::EndsWith("cudaErrorIllegalAddress (an illegal memory "
                                                  "access was encountered)"));
  for (const std::string& outcome : outcomes) {
    const bool known = outcome.starts_with("aborted: tensor group of vision: rank ") ||
                       outcome.find("cudaErrorIllegalAddress") != std::string::npos;
    INFO(outcome);
    CHECK(known);
  }
}

TEST_CASE("an abort ends the calls of all members") {
  const std::vector<int> devices = GENERATE(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 1});
  Machine machine;
  DeviceCrew crew{devices};
  const auto outcomes = crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    if (it.rank == 2) {
      crew.abort->Raise("stop");
      crew.abort->ThrowIfRaised();
    }
    for (;;) it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
  });
  CHECK(outcomes == All(3, "aborted: stop"));
}

TEST_CASE("a member that never comes is named when patience ends") {
  Machine machine;
  DeviceCrew crew{{0, 0, 1}};
  crew.patience = 200ms;
  crew.stays_away = [](int rank) { return rank == 1; };
  const auto outcomes = crew.Run([](DeviceRank&) {});
  const std::string cause =
      "tensor group of vision: expected all its members within 200 ms, no sign of rank 1";
  CHECK(outcomes == std::vector<std::string>{"aborted: " + cause, "ok", "aborted: " + cause});
}
