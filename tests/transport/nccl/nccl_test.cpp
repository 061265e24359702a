// NCCL's communicators against a local group's results, on an emulated NCCL.
#include <future>

#include <catch2/catch.hpp>

#include "tests/transport/nccl/nccl_job.hpp"
#include "transport/row_exchange.hpp"

using namespace troupe;
using namespace troupe::testing;
using emulated::Machine;
using emulated::NcclNetwork;
using namespace std::chrono_literals;

TEST_CASE("ranks with a device each talk over NCCL, and it is said in one line") {
  NcclJob job(3);
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
  NcclJob job(2);
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
  NcclJob job(size, delay, {.slow_calls = slow});
  const auto outcomes = job.crew.Run([&](DeviceRank& it) { RunKnown(it, 11, 40); });
  CHECK(outcomes == All(size, "ok"));
  CHECK(job.machine.fault().empty());
  CHECK(job.machine.open() == Machine::kNothing);
}

TEST_CASE("bfloat16 is NCCL's own type") {
  NcclJob job(2);
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
    Buffer OnHost(const Buffer& rows) override { return rows; }
    DeviceRank& rank;
  };
  NcclJob job(4);
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

TEST_CASE("calls are queued: no thread waits for a stream that stands still") {
  NcclJob job(2);
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

TEST_CASE("several groups of the same ranks do not mix") {
  Machine machine({.num_devices = 2, .max_delay = 100us});
  NcclNetwork network;
  const auto abort = std::make_shared<AbortSignal>();
  Nccl nccl(abort);
  const auto outcomes = InTwoGroups(nccl, abort, [](const RankOfTwoGroups& it) {
    const auto there =
        ToDevice(it.pool, it.stream, std::vector<float>{static_cast<float>(it.rank + 1), 0.0F});
    it.first.AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
    it.second.AllReduce(there.get(), 1, DType::kFloat32, ReduceOp::kSum);
    if (FromDevice<float>(it.stream, there.get(), 1)[0] != 6.0F)
      throw std::runtime_error("a wrong sum");
  });
  CHECK(outcomes == All(2, "ok"));
  CHECK(network.counts() == "4 made, 0 aborted, 4 destroyed");
}
