// Memory and kernels in the order of streams, on an emulated device.
#include <cstring>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/kernels/rows.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/gpu/host/on_device.hpp"

using namespace troupe;
using namespace troupe::gpu;
using namespace troupe::testing;
using emulated::Machine;
using namespace std::chrono_literals;

TEST_CASE("a device that has no more memory says so, and remains usable") {
  Machine machine({.memory_bytes = 4096});
  const Stream stream(0);
  MemoryPool pool(0);
  const auto most = pool.Allocate(4000, stream);
  CHECK_THROWS_WITH(pool.Allocate(200, stream),
                    "cudaMallocFromPoolAsync(&data, bytes, pool_, stream.get()): "
                    "cudaErrorMemoryAllocation (out of memory)");
  static_cast<void>(cudaGetLastError());
  CHECK_NOTHROW(pool.Allocate(90, stream));
  CHECK(machine.fault().empty());
}

TEST_CASE("memory is released behind what is queued when its last owner goes") {
  Machine machine({.max_delay = 200us});
  {
    const Stream stream(0);
    MemoryPool pool(0);
    const std::vector<int> values = {3, 1, 4, 1, 5};
    auto there = ToDevice(pool, stream, values);
    auto copy = pool.Allocate(20, stream);
    Copy(stream, copy.get(), there.get(), 20, Way::kOnDevice);
    there.reset();
    CHECK(FromDevice<int>(stream, copy.get(), 5) == values);
  }
  CHECK(machine.fault().empty());
}

TEST_CASE("a use after the release is found out") {
  Machine machine;
  {
    const Stream stream(0);
    MemoryPool pool(0);
    auto there = ToDevice(pool, stream, std::vector<int>{1, 2, 3});
    void* const stale = there.get();
    there.reset();
    TROUPE_CUDA(cudaMemsetAsync(stale, 0, 4, stream.get()));
    stream.Synchronize();
  }
  CHECK(machine.fault() == "a memset on device 0 uses memory that is no device's, or is released");
}

TEST_CASE("memory that outlives its stream is found out") {
  Machine machine;
  {
    MemoryPool pool(0);
    auto stream = std::make_unique<Stream>(0);
    const auto there = pool.Allocate(8, *stream);
    stream.reset();
  }
  CHECK(machine.fault() == "cudaFreeAsync: memory outlives its stream");
}

TEST_CASE("memory of another device is out of reach of a kernel") {
  Machine machine;
  {
    const Stream here(0);
    const Stream there(1);
    MemoryPool pool(1);
    const auto far = pool.Allocate(64, there);
    there.Synchronize();
    auto* const sums = static_cast<std::uint64_t*>(far.get());
    RowChecksums(here, static_cast<const std::byte*>(far.get()), 1, 8, sums + 4);
    here.Synchronize();
  }
  CHECK(machine.fault() == "RowChecksums on device 0 uses memory of device 1");
}

TEST_CASE("kernels run in the order of their stream, as the plain loops") {
  Machine machine({.max_delay = 200us});
  {
    const DeviceGuard guard(1);
    const Stream stream(1);
    MemoryPool pool(1);
    std::vector<float> rows(40 * 8);
    std::iota(rows.begin(), rows.end(), 0.5F);
    const std::vector<std::int64_t> index = {7, 0, 39, 12};
    const auto there = ToDevice(pool, stream, rows);
    const auto table = ToDevice(pool, stream, index);
    const auto taken = pool.Allocate(4 * 32, stream);
    const auto sums = pool.Allocate(4 * 8, stream);
    const auto bytes = [](const std::shared_ptr<void>& data) {
      return static_cast<std::byte*>(data.get());
    };
    TakeRows(stream, bytes(there), static_cast<const std::int64_t*>(table.get()), 4, 32,
             bytes(taken));
    RowChecksums(stream, bytes(taken), 4, 32, static_cast<std::uint64_t*>(sums.get()));
    ScatterRows(stream, bytes(taken), static_cast<const std::int64_t*>(table.get()), 4, 32,
                bytes(there));
    CHECK(FromDevice<float>(stream, there.get(), rows.size()) == rows);
    std::vector<float> expected(4 * 8);
    std::vector<std::uint64_t> expected_sums(4);
    GatherRows(reinterpret_cast<const std::byte*>(rows.data()), index.data(), 4, 32,
               reinterpret_cast<std::byte*>(expected.data()));
    RowChecksums(reinterpret_cast<const std::byte*>(expected.data()), 4, 32, expected_sums.data());
    CHECK(FromDevice<float>(stream, taken.get(), 32) == expected);
    CHECK(FromDevice<std::uint64_t>(stream, sums.get(), 4) == expected_sums);
  }
  CHECK(machine.fault().empty());
}

TEST_CASE("AdamW in the order of a stream gives the plain loop's numbers, rounded as well") {
  Machine machine;
  {
    const Stream stream(0);
    MemoryPool pool(0);
    const AdamWStep step{.learning_rate = 0.01, .weight_decay = 0.1, .step = 3};
    std::vector<float> value = {1.0F, -2.0F, 3.0F};
    std::vector<float> first = {0.1F, 0.2F, 0.3F};
    std::vector<float> second = {0.01F, 0.02F, 0.03F};
    const std::vector<float> gradient = {0.5F, -0.25F, 0.125F};
    const auto g = ToDevice(pool, stream, gradient);
    const auto v = ToDevice(pool, stream, value);
    const auto m = ToDevice(pool, stream, first);
    const auto s = ToDevice(pool, stream, second);
    const auto rounded = pool.Allocate(6, stream);
    ApplyAdamW(stream, step, 3, static_cast<float*>(g.get()), static_cast<float*>(v.get()),
               static_cast<float*>(m.get()), static_cast<float*>(s.get()),
               static_cast<std::uint16_t*>(rounded.get()));
    troupe::ApplyAdamW(step, 3, gradient.data(), value.data(), first.data(), second.data());
    CHECK(FromDevice<float>(stream, v.get(), 3) == value);
    const auto bits = FromDevice<std::uint16_t>(stream, rounded.get(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint32_t word = std::uint32_t{bits[i]} << 16U;
      float widened = 0.0F;
      std::memcpy(&widened, &word, sizeof widened);
      CHECK(widened == Approx(value[i]).epsilon(1.0 / 256));
    }
  }
  CHECK(machine.fault().empty());
}

TEST_CASE("a kernel is launched by a thread that talks to the stream's device") {
  Machine machine;
  {
    const Stream stream(1);
    CHECK_THROWS_AS(RowChecksums(stream, nullptr, 0, 4, nullptr), CudaError);
  }
  CHECK(machine.fault() ==
        "a kernel is launched on a stream of device 1 by a thread that talks to device 0");
}
