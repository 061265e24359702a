// A tensor's bytes, shared by reference count. Independent of the code that computes on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layout/shape.hpp"

namespace troupe {

enum class DType : std::uint8_t { kFloat32, kFloat64, kInt64, kInt32, kUInt8, kBFloat16 };

std::size_t SizeOf(DType dtype);    ///< bytes of one element
std::string ToString(DType dtype);  ///< "float32"

/// A contiguous tensor: a handle that is cheap to copy. The bytes live as long as the last handle
/// or view. The receiver of a handle must not write through it, unless it allocated the memory. A
/// message may name a tensor only once its bytes are complete, on a device as on the host.
class Buffer {
 public:
  /// The device() of host memory.
  static constexpr int kHost = -1;

  Buffer() = default;  ///< no tensor: defined() is false
  /// Uninitialised, aligned to 64 bytes. Throws std::bad_alloc, std::invalid_argument (a negative
  /// size).
  static Buffer Allocate(Shape shape, DType dtype);
  static Buffer Zeros(Shape shape, DType dtype);
  static Buffer AllocateBytes(std::size_t num_bytes);  ///< (num_bytes,) of kUInt8
  /// Memory that `owner` keeps alive. The last handle releases `owner`, on its thread. `device` is
  /// the memory's location: kHost or the number of a GPU of this process.
  static Buffer Wrap(std::shared_ptr<void> owner, void* data, Shape shape, DType dtype,
                     int device = kHost);
  /// Host memory that outlives every handle to it, as (num_bytes,) of kUInt8.
  static Buffer WrapBytes(std::byte* data, std::size_t num_bytes);
  /// A list of row chunks, some in device memory. data() is null until the device that needs the
  /// rows has gathered them, in the order of its own work. All chunks have the same row shape and
  /// dtype. device() is that of the first chunk in device memory.
  static Buffer InParts(std::vector<Buffer> parts);

  /// A handle to bytes of another process: shape and dtype are known, data() is null until
  /// TensorStore::Fetch has fetched them. `owner` is the store's record of them.
  static Buffer Remote(std::shared_ptr<void> owner, std::int64_t offset, Shape shape, DType dtype);

  bool defined() const { return data_ != nullptr || remote_ || parts_; }
  /// Whether the bytes are in this process. True for an undefined buffer.
  bool local() const { return !remote_; }
  /// For a handle that is not local: offset in bytes within the allocation of its owner.
  std::int64_t remote_offset() const { return remote_offset_; }
  int device() const { return device_; }
  bool on_host() const { return device_ == kHost; }
  /// The chunks of InParts, at least one; empty for other buffers.
  std::span<const Buffer> parts() const;
  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t num_elements() const { return NumElements(shape_); }
  std::size_t num_bytes() const {
    return static_cast<std::size_t>(num_elements()) * SizeOf(dtype_);
  }
  /// The outermost size; throws std::invalid_argument for a scalar.
  std::int64_t num_rows() const;
  std::size_t row_bytes() const;
  /// Rows [begin, end) of the outermost dimension, sharing the bytes, local or not. Throws
  /// std::out_of_range.
  Buffer Rows(std::int64_t begin, std::int64_t end) const;
  /// Handles and views that share these bytes.
  long use_count() const { return owner_.use_count(); }
  const std::shared_ptr<void>& owner() const { return owner_; }

 private:
  std::shared_ptr<void> owner_;
  std::byte* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kFloat32;
  bool remote_ = false;
  std::int64_t remote_offset_ = 0;
  int device_ = kHost;
  std::shared_ptr<const std::vector<Buffer>> parts_;
};

/// Bytes [offset, offset + num_bytes) of `buffer`, as a [num_bytes] uint8 view in the same memory,
/// in parts if `buffer` is. Throws std::out_of_range.
Buffer BytesOf(const Buffer& buffer, std::size_t offset, std::size_t num_bytes);

/// Concatenates buffers of equal row shape. Returns a view if only one has rows or if all are
/// contiguous in one allocation; otherwise a copy, or Buffer::InParts if some are on devices.
/// Throws std::invalid_argument if row shapes or dtypes differ or if `parts` is empty.
Buffer ConcatenateRows(const std::vector<Buffer>& parts);

}  // namespace troupe
