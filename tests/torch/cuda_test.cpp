// What is asked of libtorch besides computing: refused by name without CUDA, and right on a device.
#include <catch2/catch.hpp>

#include "modules/torch/cuda/torch_cuda.hpp"
#ifdef TROUPE_HAS_CUDA
#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/stream.hpp"
#endif

namespace troupe {
namespace {

#ifdef TROUPE_HAS_CUDA
bool HasDevice() { return gpu::NumDevices() > 0; }

/// A stream that libtorch uses as long as it lives.
struct BoundStream : gpu::Stream {
  BoundStream() : Stream(0) { BindTorchToStream(0, get()); }
  ~BoundStream() { BindTorchToStream(0, nullptr); }
};
#else
bool HasDevice() { return false; }
#endif

/// What `call` throws says.
std::string WordsOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a libtorch without CUDA says what is missing", "[torch]") {
  if (TorchHasCuda()) return;
  const auto words = Catch::Contains("libtorch knows no CUDA devices");
  CHECK_THROWS_WITH(BindTorchToStream(0, nullptr), words);
  CHECK_THROWS_WITH(TorchMemoryUse(0), words);
  CHECK_THROWS_WITH(ResetTorchPeak(0), words);
  CHECK_THROWS_WITH(EmptyTorchCache(), words);
  CHECK_THROWS_WITH(AllocateTorchMemory(0, 8, nullptr), words);
  CHECK_THROWS_WITH(AllocateTorchPinned(8), words);
}

TEST_CASE("without a device nothing is in use, and asking for some fails in one line", "[torch]") {
  if (!TorchHasCuda() || HasDevice()) return;
  CHECK(TorchMemoryUse(0).in_use_bytes == 0);
  CHECK(TorchMemoryUse(0).reserved_bytes == 0);
  CHECK(TorchMemoryUse(0).peak_bytes == 0);
  ResetTorchPeak(0);
  EmptyTorchCache();
  CHECK(AllocateTorchMemory(0, 0, nullptr) == nullptr);
  CHECK(AllocateTorchPinned(0) == nullptr);
  // libtorch's own words, which differ between versions; its stack of calls is left out.
  for (const std::string& words : {WordsOf([] { BindTorchToStream(0, nullptr); }),
                                   WordsOf([] { AllocateTorchMemory(0, 8, nullptr); }),
                                   WordsOf([] { AllocateTorchPinned(8); })}) {
    CHECK_THAT(words, Catch::Contains("NVIDIA") || Catch::Contains("CUDA"));
    CHECK_THAT(words, !Catch::Contains("frame #"));
    CHECK_THAT(words, !Catch::Contains("raised from"));
  }
}

#ifdef TROUPE_HAS_CUDA
TEST_CASE("memory of libtorch's allocator is counted, kept for reuse, and given back", "[gpu]") {
  REQUIRE(TorchHasCuda());
  constexpr std::int64_t kSome = 64 << 20;
  const BoundStream stream;
  const auto before = TorchMemoryUse(0);
  auto some = AllocateTorchMemory(0, kSome, stream.get());
  CHECK(TorchMemoryUse(0).in_use_bytes - before.in_use_bytes == kSome);
  CHECK(TorchMemoryUse(0).reserved_bytes >= before.in_use_bytes + kSome);
  const void* const where = some.get();
  some.reset();
  CHECK(TorchMemoryUse(0).in_use_bytes == before.in_use_bytes);
  CHECK(TorchMemoryUse(0).peak_bytes >= before.in_use_bytes + kSome);
  ResetTorchPeak(0);
  CHECK(TorchMemoryUse(0).peak_bytes == before.in_use_bytes);
  CHECK(AllocateTorchMemory(0, kSome, stream.get()).get() == where);
  EmptyTorchCache();
  CHECK(TorchMemoryUse(0).reserved_bytes < before.in_use_bytes + kSome);
}

TEST_CASE("pinned memory of libtorch holds what a device wrote into it", "[gpu]") {
  constexpr std::size_t kBytes = 1 << 20;
  const BoundStream stream;
  const auto there = AllocateTorchMemory(0, kBytes, stream.get());
  const auto here = AllocateTorchPinned(kBytes);
  TROUPE_CUDA(cudaMemsetAsync(there.get(), 0x5a, kBytes, stream.get()));
  TROUPE_CUDA(cudaMemcpyAsync(here.get(), there.get(), kBytes, cudaMemcpyDefault, stream.get()));
  stream.Synchronize();
  const auto* const bytes = static_cast<const unsigned char*>(here.get());
  CHECK(bytes[0] == 0x5a);
  CHECK(bytes[kBytes - 1] == 0x5a);
}
#endif

}  // namespace troupe
