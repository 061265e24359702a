// NCCL's communicators against a local group's results, and their ends, on an emulated NCCL.
#include "tests/gpu/emulated/nccl/nccl.hpp"

#include <atomic>
#include <future>

#include <catch2/catch.hpp>

#include "tests/transport/gpu/known_on_device.hpp"
#include "transport/nccl/nccl.hpp"
#include "transport/row_exchange.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;
using emulated::NcclNetwork;
using namespace std::chrono_literals;

namespace {

/// A machine with a device per rank, NCCL between them, and the job's watch over it.
struct Job {
  explicit Job(int size, std::chrono::microseconds delay = 0us,
               emulated::NcclSettings settings = {})
      : machine({.num_devices = size, .max_delay = delay}), network(settings) {
    for (int i = 0; i < size; ++i) crew.devices.push_back(size - 1 - i);
    crew.library = &nccl;
  }

  Machine machine;
  NcclNetwork network;
  DeviceCrew crew;
  Nccl nccl{crew.abort};
};

}  // namespace

TEST_CASE("ranks with a device each talk over NCCL, and it is said in one line") {
  Job job(3);
  std::vector<std::string> said(3);
  const auto outcomes = job.crew.Run(
      [&](DeviceRank& it) { said[static_cast<std::size_t>(it.rank)] = it.description; });
  CHECK(outcomes == All(3, "ok"));
  CHECK(said ==
        std::vector<std::string>(3, "tensor group of vision: NCCL 2.28.9 over rank 0 to rank 2"));
  CHECK(job.network.counts() == "3 made, 0 aborted, 3 destroyed");
  CHECK(job.machine.fault().empty());
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("with NCCL, ranks that share a device go through pinned memory") {
  Job job(2);
  job.crew.devices = {1, 0, 1};
  const auto outcomes = job.crew.Run([](DeviceRank& it) {
    if (it.description.find("rank 0 and rank 2 share a device") == std::string::npos)
      throw std::runtime_error(it.description);
  });
  CHECK(outcomes == All(3, "ok"));
  CHECK(job.network.counts() == "0 made, 0 aborted, 0 destroyed");
}

TEST_CASE("NCCL's operations have the results of a local group, in stream order") {
  const int size = GENERATE(2, 3, 5);
  const auto delay = GENERATE(0us, 200us);
  const int slow = GENERATE(0, 3);
  Job job(size, delay, {.slow_calls = slow});
  const auto outcomes = job.crew.Run([&](DeviceRank& it) { RunKnown(it, 11, 40); });
  CHECK(outcomes == All(size, "ok"));
  CHECK(job.machine.fault().empty());
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("bfloat16 is NCCL's own type") {
  Job job(2);
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    // 1 and 2 in the upper half of a float; as integers their sum would be another number.
    std::vector<std::uint16_t> bits = {it.rank == 0 ? std::uint16_t{0x3f80}
                                                    : std::uint16_t{0x4000}};
    ThroughDevice group(it.group, it.stream, it.pool);
    group.AllReduce(bits.data(), 1, DType::kBFloat16, ReduceOp::kSum);
    if (bits[0] != 0x4040) throw std::runtime_error("not 3");
  });
  CHECK(outcomes == All(2, "ok"));
}

TEST_CASE("members without rows take part in an exchange over NCCL") {
  /// As a rank's queue has it: no rows have no memory.
  struct Rows final : RowMemory {
    explicit Rows(DeviceRank& it) : rank(it) {}
    Buffer Allocate(Shape shape, DType dtype) override {
      const std::size_t bytes = static_cast<std::size_t>(NumElements(shape)) * SizeOf(dtype);
      std::shared_ptr<void> owner = rank.pool.Allocate(bytes, rank.stream);
      void* const data = owner.get();
      return Buffer::Wrap(std::move(owner), data, std::move(shape), dtype, rank.stream.device());
    }
    Buffer Here(const Buffer& rows) override { return rows; }
    DeviceRank& rank;
  };
  Job job(4);
  // Rank 0 only sends, 2 only receives, 1 does both and 3 neither.
  ExchangePlan plan;
  plan.moves = {{0, 1, {0, 1}, {0, 1}}, {0, 2, {1, 2}, {0, 1}}, {1, 2, {0, 1}, {1, 2}}};
  plan.rows_out = {0, 1, 2, 0};
  plan.row_shape = {2};
  std::vector<std::vector<float>> out(4);
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    Rows memory(it);
    const auto self = static_cast<std::size_t>(it.rank);
    std::vector<Buffer> rows;
    if (it.rank < 2) {
      const auto values = it.rank == 0 ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{5, 6};
      const auto count = static_cast<std::int64_t>(values.size());
      auto owner = ToDevice(it.pool, it.stream, values);
      void* const data = owner.get();
      rows.push_back(Buffer::Wrap(std::move(owner), data, {count / 2, 2}, DType::kFloat32,
                                  it.stream.device()));
    }
    const Buffer arrived = ExchangeRows(it.group, plan, rows, memory);
    out[self] = FromDevice<float>(it.stream, arrived.data(),
                                  static_cast<std::size_t>(arrived.num_elements()));
  });
  CHECK(outcomes == All(4, "ok"));
  CHECK(out == std::vector<std::vector<float>>{{}, {1, 2}, {3, 4, 5, 6}, {}});
  CHECK(job.machine.fault().empty());
}

TEST_CASE("calls are queued: nobody waits for a stream that stands still") {
  Job job(2);
  std::promise<void> let_go;
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there =
        ToDevice(it.pool, it.stream, std::vector<float>{static_cast<float>(it.rank + 1)});
    if (it.rank == 0)
      job.machine.InTurn(it.stream.get(), [wait = let_go.get_future().share()] { wait.wait(); });
    it.group.AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
    it.group.Barrier();
    it.group.AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
    if (it.rank == 0) let_go.set_value();
    if (FromDevice<float>(it.stream, there.get(), 1)[0] != 6.0F)
      throw std::runtime_error("a wrong sum");
  });
  CHECK(outcomes == All(2, "ok"));
}

TEST_CASE("an error that NCCL finds ends the job in its words, and what hangs goes on") {
  Job job(3);
  std::atomic<int> stuck = 0;
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
    it.stream.Synchronize();
    if (it.rank == 1) {
      while (stuck < 2) std::this_thread::yield();
      job.network.Fail(1, ncclRemoteError, "connection closed by rank 7");
      while (!job.crew.abort->raised()) std::this_thread::yield();
      job.crew.abort->ThrowIfRaised();
    }
    // Rank 1 never comes: on the device this waits for ever.
    it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
    ++stuck;
    it.stream.Synchronize();
    it.group.Barrier();
  });
  const std::string cause =
      "tensor group of vision: rank 1: NCCL: remote process exited or there was a network error "
      "(connection closed by rank 7)";
  CHECK(job.crew.abort->cause() == cause);
  CHECK(outcomes == All(3, "aborted: " + cause));
  CHECK(job.network.counts() == "3 made, 3 aborted, 0 destroyed");
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("an abort of somebody else ends what hangs in NCCL") {
  Job job(2);
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    if (it.rank == 0) {
      it.group.AllReduce(there.get(), 16, DType::kFloat32, ReduceOp::kSum);
      job.crew.abort->Raise("process 3 is gone");
      it.stream.Synchronize();
    }
    while (!job.crew.abort->raised()) std::this_thread::yield();
    it.group.Barrier();
    // Before the watch has come by, it is only queued.
    while (true) it.group.Barrier();
  });
  CHECK(outcomes == All(2, "aborted: process 3 is gone"));
  CHECK(job.network.counts() == "2 made, 2 aborted, 0 destroyed");
}

TEST_CASE("an abort ends an exchange that waits for who sends or receives nothing") {
  Job job(2);
  const int late = GENERATE(0, 1);  // the other one hangs
  std::atomic<bool> queued = false;
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(128, it.stream);
    auto* const bytes = static_cast<std::byte*>(there.get());
    // Rank 0 sends 64 bytes, rank 1 receives them.
    const std::vector<std::size_t> sent = {0, it.rank == 0 ? 64U : 0U};
    const std::vector<std::size_t> received = {it.rank == 1 ? 64U : 0U, 0};
    if (it.rank == late) {
      while (!queued) std::this_thread::yield();
      job.crew.abort->Raise("process 3 is gone");
    } else {
      it.group.AllToAll(bytes, sent, bytes + 64, received);
      queued = true;
    }
    it.stream.Synchronize();
    while (!job.crew.abort->raised()) std::this_thread::yield();
    job.crew.abort->ThrowIfRaised();
  });
  CHECK(outcomes == All(2, "aborted: process 3 is gone"));
  CHECK(job.network.counts() == "2 made, 2 aborted, 0 destroyed");
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("a member that never comes is named when patience ends") {
  Job job(3);
  job.crew.patience = 200ms;
  job.crew.stays_away = [](int rank) { return rank == 2; };
  const auto outcomes = job.crew.Run([](DeviceRank&) {});
  const std::string cause =
      "tensor group of vision: expected all its members within 200 ms, no sign of rank 2";
  CHECK(outcomes == std::vector<std::string>{"aborted: " + cause, "aborted: " + cause, "ok"});
}

TEST_CASE("members that have come and are never connected are given up") {
  Job job(3, 0us, {.stalled = 1});
  job.crew.patience = 200ms;
  const auto outcomes = job.crew.Run([](DeviceRank&) {});
  CHECK(outcomes == All(3,
                        "aborted: tensor group of vision: expected all its members within 200 ms, "
                        "all have come, and NCCL still connects them"));
  CHECK(job.network.counts() == "3 made, 3 aborted, 0 destroyed");
}

TEST_CASE("a member that cannot connect is named on all members, in NCCL's words") {
  Job job(3, 0us, {.refused = 1});
  const auto outcomes = job.crew.Run([](DeviceRank&) {});
  const std::string cause =
      "tensor group of vision: rank 1: NCCL: connecting: unhandled system error";
  CHECK(job.crew.abort->cause() == cause);
  for (const std::string& outcome : outcomes) CHECK_THAT(outcome, Catch::EndsWith(cause));
  CHECK(job.network.counts() == "2 made, 2 aborted, 0 destroyed");
}

TEST_CASE("illegal arguments of one member end the job") {
  Job job(2);
  const auto outcomes = job.crew.Run([&](DeviceRank& it) {
    const auto there = it.pool.Allocate(64, it.stream);
    if (it.rank == 1) it.group.Broadcast(there.get(), 64, 2);
    for (;;) it.group.Barrier();
  });
  const std::string cause =
      "tensor group of vision: rank 1: broadcast: expected a root in [0, 2), got 2";
  CHECK(outcomes == std::vector<std::string>{"aborted: " + cause, "invalid argument: " + cause});
}

TEST_CASE("several groups of the same ranks do not mix") {
  Machine machine({.num_devices = 2, .max_delay = 100us});
  NcclNetwork network;
  const auto abort = std::make_shared<AbortSignal>();
  Nccl nccl(abort);
  auto tensor = MakeLocalGroup(2, abort);
  auto data = MakeLocalGroup(2, abort);
  std::vector<std::string> outcomes(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto i = static_cast<std::size_t>(rank);
      outcomes[i] = OutcomeOf([&] {
        const gpu::Stream stream(rank);
        gpu::MemoryPool pool(rank);
        const auto join = [&](auto& hosts, const char* name) {
          return MakeDeviceGroup({std::move(hosts[i]), &stream, 0, {nullptr, name, {}}, abort, 10s},
                                 &nccl)
              .communicator;
        };
        const auto first = join(tensor, "tensor");
        const auto second = join(data, "data");
        const auto there =
            ToDevice(pool, stream, std::vector<float>{static_cast<float>(rank + 1), 0.0F});
        first->AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
        second->AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
        if (FromDevice<float>(stream, there.get(), 1)[0] != 6.0F)
          throw std::runtime_error("a wrong sum");
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(outcomes == All(2, "ok"));
  CHECK(network.counts() == "4 made, 0 aborted, 4 destroyed");
}

TEST_CASE("all groups of a device are aborted at once: one may wait behind another") {
  Machine machine({.num_devices = 2});
  NcclNetwork network;
  const auto abort = std::make_shared<AbortSignal>();
  Nccl nccl(abort);
  auto tensor = MakeLocalGroup(2, abort);
  auto data = MakeLocalGroup(2, abort);
  std::vector<std::string> outcomes(2);
  std::vector<std::thread> threads;
  std::atomic<bool> hangs = false;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto i = static_cast<std::size_t>(rank);
      outcomes[i] = OutcomeOf([&] {
        const gpu::Stream stream(rank);
        gpu::MemoryPool pool(rank);
        const auto join = [&](auto& hosts, const char* name) {
          return MakeDeviceGroup({std::move(hosts[i]), &stream, 0, {nullptr, name, {}}, abort, 10s},
                                 &nccl)
              .communicator;
        };
        const auto first = join(tensor, "tensor");
        const auto second = join(data, "data");
        if (rank == 0) {
          second->Barrier();  // the other never comes
          std::this_thread::sleep_for(50ms);
          hangs = true;
        }
        while (!hangs) std::this_thread::yield();
        if (rank == 1) abort->Raise("process 3 is gone");
        stream.Synchronize();
        while (network.counts() != "4 made, 4 aborted, 0 destroyed") std::this_thread::yield();
        abort->ThrowIfRaised();
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(outcomes == All(2, "aborted: process 3 is gone"));
  CHECK(machine.fault().empty());
}
