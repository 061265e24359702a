// Operations that run concurrently with other work of a device: events order the two.
#include "transport/gpu/side_communicator.hpp"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/transport/gpu/device_crew.hpp"
#include "transport/started_operations.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;
using namespace std::chrono_literals;

namespace {

using Values = std::vector<float>;

/// A rank whose work is on `caller`, with two groups of all ranks on separate streams.
struct SideRank {
  const gpu::Stream& caller;
  gpu::MemoryPool& pool;
  int rank;
  StartedOperations& started;
};

std::vector<std::string> RunBeside(const std::vector<int>& devices,
                                   const std::function<void(const SideRank&)>& body) {
  const auto abort = std::make_shared<AbortSignal>();
  const Watchdog watchdog(abort);
  const int size = static_cast<int>(devices.size());
  std::vector<std::vector<std::unique_ptr<Communicator>>> hosts;
  for (int group = 0; group < 2; ++group) hosts.push_back(MakeLocalGroup(size, abort));
  std::vector<std::string> outcomes(devices.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = OutcomeOf([&] {
        const gpu::Stream caller(devices[i]);
        gpu::MemoryPool pool(devices[i]);
        std::vector<std::unique_ptr<Communicator>> groups;
        for (auto& host : hosts) {
          auto own = std::make_unique<gpu::Stream>(devices[i]);
          const gpu::Stream* const stream = own.get();
          DeviceGroup group = MakeDeviceGroup(
              {std::move(host[i]), stream, 0, {nullptr, "data", {}}, abort, 10s}, nullptr);
          groups.push_back(
              MakeSideCommunicator(std::move(own), std::move(group.communicator),
                                   [&caller]() -> const gpu::Stream& { return caller; }));
        }
        StartedOperations started(std::move(groups));
        body({caller, pool, static_cast<int>(i), started});
        caller.Synchronize();
      });
    });
  }
  threads.clear();
  return outcomes;
}

Values ValuesOf(int rank, int round) {
  Values values(300);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((rank + 1) * 1000 + round * 37 + static_cast<int>(i));
  }
  return values;
}

Values SumOf(int size, int round) {
  Values sum(300, 0.0F);
  for (int rank = 0; rank < size; ++rank) {
    const Values values = ValuesOf(rank, round);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

}  // namespace

/// Sums over ranks, then over the parts of a sum: what each rank has of 300 / size elements.
Values SumOfParts(int size, int round) {
  const Values sum = SumOf(size, round);
  const std::size_t part = sum.size() / static_cast<std::size_t>(size);
  Values total(part, 0.0F);
  for (std::size_t i = 0; i < part * static_cast<std::size_t>(size); ++i) total[i % part] += sum[i];
  return total;
}

/// Copies the values of `rank` to its device, late.
std::shared_ptr<void> Upload(Machine& machine, const SideRank& it, int round,
                             std::vector<std::shared_ptr<void>>& pinned) {
  const Values values = ValuesOf(it.rank, round);
  const std::size_t bytes = values.size() * sizeof(float);
  pinned.push_back(gpu::AllocatePinned(bytes));  // so that the copy takes its turn
  std::memcpy(pinned.back().get(), values.data(), bytes);
  auto memory = it.pool.Allocate(bytes, it.caller);
  machine.InTurn(it.caller.get(), [] { std::this_thread::sleep_for(3ms); });
  gpu::Copy(it.caller, memory.get(), pinned.back().get(), bytes, gpu::Way::kToDevice);
  return memory;
}

TEST_CASE("a started operation follows the work before it, and work after its wait follows it") {
  const std::vector<int> devices =
      GENERATE(std::vector<int>{0, 0}, std::vector<int>{0, 1}, std::vector<int>{1, 0, 1});
  const int size = static_cast<int>(devices.size());
  Machine machine({.max_delay = 300us, .seed = static_cast<unsigned>(size)});
  const auto outcomes = RunBeside(devices, [size, &machine](const SideRank& it) {
    constexpr int kRounds = 12;
    std::vector<std::shared_ptr<void>> pinned;
    std::vector<std::shared_ptr<void>> memory;
    std::vector<StartedOperations::Number> numbers;
    for (int round = 0; round < kRounds; ++round) {  // all are under way at once
      memory.push_back(Upload(machine, it, round, pinned));
      numbers.push_back(it.started.Start(
          0, Collective::AllReduce(memory.back().get(), 300, DType::kFloat32, ReduceOp::kSum)));
    }
    for (int round = 0; round < kRounds; ++round) {
      const auto at = static_cast<std::size_t>(round);
      it.started.Wait(numbers[at]);
      if (FromDevice<float>(it.caller, memory[at].get(), 300) != SumOf(size, round)) {
        throw std::runtime_error("another sum in round " + std::to_string(round));
      }
    }
  });
  CHECK(outcomes == All(size, "ok"));
  CHECK(machine.fault().empty());
  CHECK(machine.open() == Machine::kNothing);
}

TEST_CASE("an operation of one group follows the one before it, of another group") {
  const std::vector<int> devices = GENERATE(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1});
  const int size = static_cast<int>(devices.size());
  Machine machine({.max_delay = 300us, .seed = static_cast<unsigned>(size)});
  const auto outcomes = RunBeside(devices, [size, &machine](const SideRank& it) {
    std::vector<std::shared_ptr<void>> pinned;
    for (int round = 0; round < 12; ++round) {
      const auto memory = Upload(machine, it, round, pinned);
      const std::int64_t part = 300 / size;
      auto* const own = static_cast<float*>(memory.get()) + it.rank * part;
      it.started.Start(
          0, Collective::ReduceScatter(memory.get(), part, DType::kFloat32, ReduceOp::kSum, own));
      const auto last =
          it.started.Start(1, Collective::AllReduce(own, part, DType::kFloat32, ReduceOp::kSum));
      it.started.Wait(last);
      const Values got = FromDevice<float>(it.caller, own, static_cast<std::size_t>(part));
      if (got != SumOfParts(size, round)) {
        throw std::runtime_error("another sum in round " + std::to_string(round));
      }
    }
  });
  CHECK(outcomes == All(size, "ok"));
  CHECK(machine.fault().empty());
  CHECK(machine.open() == Machine::kNothing);
}
