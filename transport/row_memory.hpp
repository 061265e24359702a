// The memory in which rows are gathered: the host's, or a device's in the order of its work.
#pragma once

#include <utility>

#include "transport/buffer.hpp"

namespace troupe {

/// Of one rank; used on its thread only.
class RowMemory {
 public:
  RowMemory() = default;
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;
  virtual ~RowMemory() = default;

  /// Uninitialised memory, for operations that start after this call.
  virtual Buffer Allocate(Shape shape, DType dtype) = 0;
  /// The same rows as one contiguous buffer in this memory: `rows` itself if it is one, otherwise a
  /// copy. Undefined for an undefined buffer.
  virtual Buffer Here(const Buffer& rows) = 0;
  /// The same rows in host memory: `rows` itself if they are there.
  virtual Buffer OnHost(const Buffer& rows) = 0;
};

/// Buffers on the host are always contiguous.
class HostRowMemory final : public RowMemory {
 public:
  Buffer Allocate(Shape shape, DType dtype) override {
    return Buffer::Allocate(std::move(shape), dtype);
  }
  Buffer Here(const Buffer& rows) override { return rows; }
  Buffer OnHost(const Buffer& rows) override { return rows; }
};

}  // namespace troupe
