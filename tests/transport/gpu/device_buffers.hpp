// Tensors on an emulated device, made and read by a test.
#pragma once

#include <utility>

#include "gpu/copies.hpp"
#include "gpu/stream.hpp"
#include "tests/gpu/memory_pool.hpp"
#include "transport/buffer.hpp"

namespace troupe::testing {

/// Memory of an emulated device as buffers.
struct DeviceBuffers {
  explicit DeviceBuffers(int on) : device(on), stream(on), pool(on) {}

  Buffer Blank(Shape shape, DType dtype = DType::kUInt8) {
    auto memory =
        pool.Allocate(static_cast<std::size_t>(NumElements(shape)) * SizeOf(dtype), stream);
    stream.Synchronize();
    void* const data = memory.get();
    return Buffer::Wrap(std::move(memory), data, std::move(shape), dtype, device);
  }
  Buffer From(const Buffer& host) {
    Buffer there = Blank(host.shape(), host.dtype());
    gpu::Copy(stream, there.data(), host.data(), host.num_bytes(), gpu::Way::kToDevice);
    stream.Synchronize();
    return there;
  }
  Buffer ToHost(const Buffer& there) {
    Buffer host = Buffer::Allocate(there.shape(), there.dtype());
    gpu::Copy(stream, host.data(), there.data(), there.num_bytes(), gpu::Way::kToHost);
    stream.Synchronize();
    return host;
  }

  const int device;
  const gpu::Stream stream;
  gpu::MemoryPool pool;
};

}  // namespace troupe::testing
