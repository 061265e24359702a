// Memory of an emulated device, filled and read by a test.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/check.hpp"
#include "gpu/copies.hpp"
#include "gpu/memory.hpp"
#include "gpu/stream.hpp"
#include "tests/gpu/memory_pool.hpp"

namespace troupe::testing {

template <class T>
std::shared_ptr<void> ToDevice(gpu::MemoryPool& pool, const gpu::Stream& stream,
                               const std::vector<T>& values) {
  auto there = pool.Allocate(values.size() * sizeof(T), stream);
  gpu::Copy(stream, there.get(), values.data(), values.size() * sizeof(T), gpu::Way::kToDevice);
  return there;
}

/// What is at `data` when all that is queued on `stream` has run.
template <class T>
std::vector<T> FromDevice(const gpu::Stream& stream, const void* data, std::size_t count) {
  std::vector<T> values(count);
  gpu::Copy(stream, values.data(), data, count * sizeof(T), gpu::Way::kToHost);
  stream.Synchronize();
  return values;
}

}  // namespace troupe::testing
