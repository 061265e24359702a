// The collectives on real devices: linked with CUDA and NCCL wherever they are installed, run where
// devices are.
#include <random>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "gpu/device.hpp"
#include "gpu/kernels/device.hpp"
#include "tests/gpu/host/on_device.hpp"
#include "tests/transport/crew.hpp"
#include "transport/gpu/elements.hpp"
#include "transport/nccl/nccl.hpp"
#include "transport/reduce.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Ranks on `devices`, one thread each, sum and gather; "ok" from all that got what they must.
std::vector<std::string> SumOn(const std::vector<int>& devices) {
  const auto abort = std::make_shared<AbortSignal>();
  const Watchdog watchdog(abort);
  Nccl nccl(abort);
  const int size = static_cast<int>(devices.size());
  auto hosts = MakeLocalGroup(size, abort);
  std::vector<std::string> outcomes(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = OutcomeOf([&] {
        const gpu::DeviceGuard guard(devices[i]);
        const gpu::Stream stream(devices[i]);
        gpu::MemoryPool pool(devices[i]);
        DeviceMember member{std::move(hosts[i]), &stream, 0, {nullptr, "test", {}}, abort};
        const DeviceGroup group = MakeDeviceGroup(std::move(member), &nccl);
        Communicator& all = *group.communicator;
        std::vector<float> values(100'000);
        for (std::size_t j = 0; j < values.size(); ++j)
          values[j] = static_cast<float>(ValueOf(all.rank(), static_cast<std::int64_t>(j)));
        const auto there = ToDevice(pool, stream, values);
        const auto gathered = pool.Allocate(values.size() * 4 * hosts.size(), stream);
        all.AllGather(there.get(), values.size() * 4, gathered.get());
        all.AllReduce(there.get(), 100'000, DType::kFloat32, ReduceOp::kSum);
        all.Barrier();
        const auto sums = FromDevice<float>(stream, there.get(), values.size());
        const auto parts = FromDevice<float>(stream, gathered.get(), values.size() * hosts.size());
        for (std::size_t j = 0; j < values.size(); ++j) {
          float sum = 0.0F;
          for (int rank = 0; rank < size; ++rank) {
            const auto value = static_cast<float>(ValueOf(rank, static_cast<std::int64_t>(j)));
            sum += value;
            if (parts[static_cast<std::size_t>(rank) * values.size() + j] != value)
              throw std::runtime_error("a wrong part");
          }
          if (sums[j] != sum) throw std::runtime_error("a wrong sum");
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace

TEST_CASE("NCCL is linked and says its version") {
  CHECK_THAT(Nccl(std::make_shared<AbortSignal>()).name(), Catch::StartsWith("NCCL 2."));
}

TEST_CASE("reductions on a device have the bits of the plain loop", "[gpu]") {
  const DType dtype = GENERATE(DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32,
                               DType::kUInt8, DType::kBFloat16);
  const ReduceOp op = GENERATE(ReduceOp::kSum, ReduceOp::kMax);
  const std::int64_t count = GENERATE(0, 1, 257, 100'003);
  CAPTURE(ToString(dtype), static_cast<int>(op), count);
  const gpu::Stream stream(0);
  gpu::MemoryPool pool(0);
  const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  std::mt19937 random(3);
  gpu::Operands operands;
  operands.num_inputs = 5;
  operands.num_outputs = 2;
  std::vector<std::vector<std::byte>> inputs(5, std::vector<std::byte>(bytes));
  std::vector<std::shared_ptr<void>> there;
  std::vector<const std::byte*> plain;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::byte& byte : inputs[i]) byte = static_cast<std::byte>(random());
    // Exponents that are neither a NaN's nor an infinity's: which NaN comes out is not said.
    const std::size_t width = SizeOf(dtype);
    for (std::size_t j = width - 1; j < bytes && width > 1; j += width)
      inputs[i][j] &= std::byte{0xbf};
    there.push_back(ToDevice(pool, stream, inputs[i]));
    operands.inputs[i] = static_cast<const std::byte*>(there[i].get());
    plain.push_back(inputs[i].data());
  }
  const auto other = pool.Allocate(bytes, stream);
  operands.outputs[0] = static_cast<std::byte*>(there[2].get());  // in place of an input
  operands.outputs[1] = static_cast<std::byte*>(other.get());
  std::vector<std::byte> expected(bytes);
  Reduce(plain, count, dtype, op, expected.data());
  gpu::Reduce(stream, operands, count, ElementOf(dtype), ReductionOf(op));
  CHECK(FromDevice<std::byte>(stream, there[2].get(), bytes) == expected);
  CHECK(FromDevice<std::byte>(stream, other.get(), bytes) == expected);
}

TEST_CASE("three ranks sum on one device", "[gpu]") { CHECK(SumOn({0, 0, 0}) == All(3, "ok")); }

TEST_CASE("one rank per device sums over NCCL", "[gpu]") {
  std::vector<int> devices;
  for (int i = 0; i < gpu::NumDevices(); ++i) devices.push_back(i);
  CHECK(SumOn(devices) == All(static_cast<int>(devices.size()), "ok"));
}
