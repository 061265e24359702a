// Where rows are laid together: the host's memory, or a device's in the order of its work.
#pragma once

#include <utility>

#include "transport/buffer.hpp"

namespace troupe {

/// Of one rank; used on its thread.
class RowMemory {
 public:
  RowMemory() = default;
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;
  virtual ~RowMemory() = default;

  /// Uninitialised, for what is done from now on.
  virtual Buffer Allocate(Shape shape, DType dtype) = 0;
  /// The same rows in one piece in this memory: themselves where they are that already, else a
  /// copy. Of an undefined buffer, an undefined one.
  virtual Buffer Here(const Buffer& rows) = 0;
};

/// Buffers on the host are always in one piece.
class HostRowMemory final : public RowMemory {
 public:
  Buffer Allocate(Shape shape, DType dtype) override {
    return Buffer::Allocate(std::move(shape), dtype);
  }
  Buffer Here(const Buffer& rows) override { return rows; }
};

}  // namespace troupe
