#include "modules/torch/cuda/torch_cuda.hpp"

#ifdef TROUPE_TORCH_CUDA
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <stdexcept>
#include <string>

namespace troupe {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Returns the result of `call`; removes the stack trace from an error of libtorch.
template <class Call>
auto InItsWords(const Call& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

c10::DeviceIndex Index(int device) { return static_cast<c10::DeviceIndex>(device); }

/// The allocator does not exist before its first use.
void WakeUp() { at::globalContext().lazyInitDevice(c10::DeviceType::CUDA); }

std::int64_t OfAll(const c10::CachingAllocator::StatArray& stats,
                   std::int64_t c10::CachingAllocator::Stat::*which) {
  return stats[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].*which;
}

bool HasMemory() { return allocator::get() != nullptr && allocator::get()->initialized(); }

}  // namespace

bool TorchHasCuda() { return true; }

void BindTorchToStream(int device, void* cuda_stream) {
  InItsWords([&] {
    WakeUp();
    c10::cuda::set_device(Index(device));
    c10::cuda::setCurrentCUDAStream(
        c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(cuda_stream), Index(device)));
  });
}

DeviceMemoryUse TorchMemoryUse(int device) {
  return InItsWords([&]() -> DeviceMemoryUse {
    if (!HasMemory()) return {};
    using Stat = c10::CachingAllocator::Stat;
    const auto stats = allocator::getDeviceStats(Index(device));
    return {.in_use_bytes = OfAll(stats.allocated_bytes, &Stat::current),
            .reserved_bytes = OfAll(stats.reserved_bytes, &Stat::current),
            .peak_bytes = OfAll(stats.allocated_bytes, &Stat::peak)};
  });
}

void ResetTorchPeak(int device) {
  InItsWords([&] {
    if (HasMemory()) allocator::resetPeakStats(Index(device));
  });
}

void EmptyTorchCache() {
  InItsWords([] {
    if (HasMemory()) allocator::emptyCache();
  });
}

std::shared_ptr<void> AllocateTorchMemory(int device, std::size_t bytes, void* cuda_stream) {
  if (bytes == 0) return nullptr;
  return InItsWords([&]() -> std::shared_ptr<void> {
    WakeUp();
    const c10::cuda::CUDAGuard guard(Index(device));
    void* const data =
        allocator::raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(cuda_stream));
    return {data, [](void* mine) { allocator::raw_delete(mine); }};
  });
}

std::shared_ptr<void> AllocateTorchPinned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  return InItsWords([&]() -> std::shared_ptr<void> {
    WakeUp();
    const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(true);
    auto kept =
        std::make_shared<at::Tensor>(at::empty({static_cast<std::int64_t>(bytes)}, options));
    return {kept, kept->mutable_data_ptr()};
  });
}

}  // namespace troupe
#endif
