// A tensor's bytes, shared by reference count. Nothing here knows what computes on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

enum class DType : std::uint8_t { kFloat32, kFloat64, kInt64, kInt32, kUInt8, kBFloat16 };

std::size_t SizeOf(DType dtype);    ///< bytes of one element
std::string ToString(DType dtype);  ///< "float32"

/// Outermost first; {} is a scalar.
using Shape = std::vector<std::int64_t>;

std::int64_t NumElements(const Shape& shape);
std::string ToString(const Shape& shape);  ///< "[16, 64]"

/// A contiguous tensor: a handle that is cheap to copy. The bytes live as long as the last handle
/// or view. Who receives a handle must not write through it unless it allocated it. Whoever names a
/// tensor in a message says with it that its bytes are complete, on a device as on the host.
class Buffer {
 public:
  /// The device() of memory that the host reads and writes.
  static constexpr int kHost = -1;

  Buffer() = default;  ///< no tensor: defined() is false
  /// Uninitialised, aligned to 64 bytes. Throws std::bad_alloc, std::invalid_argument (a negative
  /// size).
  static Buffer Allocate(Shape shape, DType dtype);
  static Buffer Zeros(Shape shape, DType dtype);
  static Buffer AllocateBytes(std::size_t num_bytes);  ///< (num_bytes,) of kUInt8
  /// Memory that `owner` keeps alive; the last handle to go releases `owner`, on its thread.
  /// `device` is where the memory is: kHost, or the number of a GPU of this process.
  static Buffer Wrap(std::shared_ptr<void> owner, void* data, Shape shape, DType dtype,
                     int device = kHost);
  /// Host memory that outlives every handle to it, as (num_bytes,) of kUInt8.
  static Buffer WrapBytes(std::byte* data, std::size_t num_bytes);
  /// Rows in pieces one behind the other, of which some are on devices: data() is null until the
  /// device that needs them has laid them together, in the order of its own work. Row shape and
  /// dtype of all are the same; device() is that of the first which is not on the host.
  static Buffer InParts(std::vector<Buffer> parts);

  /// A handle to bytes of another process: shape and dtype are known, data() is null until
  /// TensorStore::Fetch brings them. `owner` is what the store keeps of it.
  static Buffer Remote(std::shared_ptr<void> owner, std::int64_t offset, Shape shape, DType dtype);

  bool defined() const { return data_ != nullptr || remote_ || parts_; }
  /// Whether the bytes are in this process (or there is no tensor at all).
  bool local() const { return !remote_; }
  /// Of a handle that is not local: bytes from the start of what its owner names.
  std::int64_t remote_offset() const { return remote_offset_; }
  int device() const { return device_; }
  bool on_host() const { return device_ == kHost; }
  /// Of InParts: its pieces, at least one; else empty.
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

/// Bytes [offset, offset + num_bytes) of `buffer`, as [num_bytes] uint8 that share them: where it
/// is, and in parts if it is. Throws std::out_of_range.
Buffer BytesOf(const Buffer& buffer, std::size_t offset, std::size_t num_bytes);

/// Buffers of equal row shape laid one behind the other: a view of the first when it is the only
/// one with rows or when all are neighbours in one allocation, else a copy, or Buffer::InParts
/// where some are on devices. Throws std::invalid_argument when row shapes or dtypes differ or
/// `parts` is empty.
Buffer ConcatenateRows(const std::vector<Buffer>& parts);

}  // namespace troupe
