#include "transport/buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <stdexcept>
#include <sys/mman.h>
#include <utility>

namespace troupe {
namespace {

constexpr std::align_val_t kAlignment{64};

// Memory of at least this size uses huge pages if the system offers them. Large blocks come fresh
// from the kernel every time, and touching them page by page takes longer than filling them.
constexpr std::size_t kLargeBytes = std::size_t{4} << 20;
constexpr std::align_val_t kLargeAlignment{std::size_t{2} << 20};

// The data() of a tensor without elements whose owner has no memory, so that it counts as defined.
alignas(64) std::byte no_elements[64];

std::size_t CheckedNumBytes(const Shape& shape, DType dtype) {
  for (const std::int64_t size : shape) {
    if (size < 0)
      throw std::invalid_argument("buffer: expected sizes of at least 0, got " + ToString(shape));
  }
  std::size_t num_bytes = SizeOf(dtype);
  bool empty = false;
  bool overflow = false;
  for (const std::int64_t size : shape) {
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(num_bytes, static_cast<std::size_t>(size), &num_bytes);
  }
  if (empty) return 0;
  if (overflow || num_bytes > static_cast<std::size_t>(PTRDIFF_MAX)) throw std::bad_alloc();
  return num_bytes;
}

std::shared_ptr<void> AllocateLarge(std::size_t num_bytes) {
  std::shared_ptr<void> owner(::operator new(num_bytes, kLargeAlignment),
                              [](void* data) { ::operator delete(data, kLargeAlignment); });
#ifdef MADV_HUGEPAGE
  madvise(owner.get(), num_bytes, MADV_HUGEPAGE);  // a hint: small pages work, too
#endif
  return owner;
}

std::string Describe(const Buffer& buffer) {
  return ToString(buffer.dtype()) + " " + ToString(buffer.shape());
}

void CheckSameRows(const Buffer& first, const Buffer& part) {
  if (!part.defined()) throw std::invalid_argument("concatenation of rows: a part is undefined");
  const bool same =
      first.dtype() == part.dtype() && !first.shape().empty() &&
      first.shape().size() == part.shape().size() &&
      std::equal(first.shape().begin() + 1, first.shape().end(), part.shape().begin() + 1);
  if (!same) {
    throw std::invalid_argument("concatenation of rows: expected rows as in " + Describe(first) +
                                ", got " + Describe(part));
  }
}

bool ShareOwner(const Buffer& a, const Buffer& b) {
  return a.owner() != nullptr && a.device() == b.device() && !a.owner().owner_before(b.owner()) &&
         !b.owner().owner_before(a.owner());
}

bool AreNeighbours(const std::vector<const Buffer*>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Buffer& before = *parts[i - 1];
    if (!ShareOwner(before, *parts[i]) || before.data() + before.num_bytes() != parts[i]->data())
      return false;
  }
  return true;
}

}  // namespace

std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kInt32:
      return 4;
    case DType::kUInt8:
      return 1;
    case DType::kBFloat16:
      return 2;
  }
  throw std::invalid_argument("dtype: unknown value " + std::to_string(static_cast<int>(dtype)));
}

std::string ToString(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
    case DType::kInt32:
      return "int32";
    case DType::kUInt8:
      return "uint8";
    case DType::kBFloat16:
      return "bfloat16";
  }
  throw std::invalid_argument("dtype: unknown value " + std::to_string(static_cast<int>(dtype)));
}

Buffer Buffer::Allocate(Shape shape, DType dtype) {
  const std::size_t num_bytes = CheckedNumBytes(shape, dtype);
  std::shared_ptr<void> owner;
  if (num_bytes >= kLargeBytes) {
    owner = AllocateLarge(num_bytes);
  } else {
    owner.reset(::operator new(num_bytes > 0 ? num_bytes : 1, kAlignment),
                [](void* data) { ::operator delete(data, kAlignment); });
  }
  void* data = owner.get();
  return Wrap(std::move(owner), data, std::move(shape), dtype);
}

Buffer Buffer::Zeros(Shape shape, DType dtype) {
  Buffer buffer = Allocate(std::move(shape), dtype);
  std::memset(buffer.data_, 0, buffer.num_bytes());
  return buffer;
}

Buffer Buffer::AllocateBytes(std::size_t num_bytes) {
  return Allocate({static_cast<std::int64_t>(num_bytes)}, DType::kUInt8);
}

Buffer Buffer::WrapBytes(std::byte* data, std::size_t num_bytes) {
  return Wrap(nullptr, data, {static_cast<std::int64_t>(num_bytes)}, DType::kUInt8);
}

Buffer Buffer::Wrap(std::shared_ptr<void> owner, void* data, Shape shape, DType dtype, int device) {
  const std::size_t num_bytes = CheckedNumBytes(shape, dtype);
  if (data == nullptr && num_bytes > 0) {
    throw std::invalid_argument("buffer: expected memory for " + ToString(dtype) + " " +
                                ToString(shape) + ", got a null pointer");
  }
  Buffer buffer;
  buffer.owner_ = std::move(owner);
  buffer.data_ = data != nullptr ? static_cast<std::byte*>(data) : no_elements;
  buffer.shape_ = std::move(shape);
  buffer.dtype_ = dtype;
  buffer.device_ = device;
  return buffer;
}

Buffer Buffer::InParts(std::vector<Buffer> parts) {
  Buffer whole;
  whole.shape_ = parts.at(0).shape();
  whole.dtype_ = parts[0].dtype();
  whole.shape_.at(0) = 0;
  for (const Buffer& part : parts) {
    whole.shape_[0] += part.num_rows();
    if (whole.on_host()) whole.device_ = part.device();
  }
  whole.parts_ = std::make_shared<const std::vector<Buffer>>(std::move(parts));
  return whole;
}

std::span<const Buffer> Buffer::parts() const {
  return parts_ ? std::span<const Buffer>(*parts_) : std::span<const Buffer>();
}

Buffer Buffer::Remote(std::shared_ptr<void> owner, std::int64_t offset, Shape shape, DType dtype) {
  static_cast<void>(CheckedNumBytes(shape, dtype));
  Buffer buffer;
  buffer.owner_ = std::move(owner);
  buffer.shape_ = std::move(shape);
  buffer.dtype_ = dtype;
  buffer.remote_ = true;
  buffer.remote_offset_ = offset;
  return buffer;
}

std::int64_t Buffer::num_rows() const {
  if (shape_.empty())
    throw std::invalid_argument("buffer: expected at least one dimension, got a scalar");
  return shape_.front();
}

std::size_t Buffer::row_bytes() const {
  std::size_t num_bytes = SizeOf(dtype_);
  for (std::size_t i = 1; i < shape_.size(); ++i) num_bytes *= static_cast<std::size_t>(shape_[i]);
  return num_bytes;
}

Buffer Buffer::Rows(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > num_rows()) {
    throw std::out_of_range("rows [" + std::to_string(begin) + ", " + std::to_string(end) +
                            "): expected a part of [0, " + std::to_string(num_rows()) + ")");
  }
  if (parts_) {
    std::vector<Buffer> kept;
    std::int64_t first = 0;
    for (const Buffer& part : *parts_) {
      const std::int64_t from = std::max(begin, first);
      const std::int64_t to = std::min(end, first + part.num_rows());
      if (from < to) kept.push_back(part.Rows(from - first, to - first));
      first += part.num_rows();
    }
    if (kept.empty()) return parts_->front().Rows(0, 0);
    return kept.size() == 1 ? kept.front() : InParts(std::move(kept));
  }
  Buffer rows = *this;
  const std::size_t skipped = static_cast<std::size_t>(begin) * row_bytes();
  if (remote_) {
    rows.remote_offset_ += static_cast<std::int64_t>(skipped);
  } else {
    rows.data_ += skipped;
  }
  rows.shape_.front() = end - begin;
  return rows;
}

Buffer BytesOf(const Buffer& buffer, std::size_t offset, std::size_t num_bytes) {
  const std::size_t all = buffer.num_bytes();
  if (offset > all || num_bytes > all - offset) {
    throw std::out_of_range("bytes [" + std::to_string(offset) + ", " +
                            std::to_string(offset + num_bytes) + "): expected a part of [0, " +
                            std::to_string(all) + ")");
  }
  const auto view = [](const Buffer& whole, std::size_t begin, std::size_t size) {
    return Buffer::Wrap(whole.owner(), whole.data() + begin, {static_cast<std::int64_t>(size)},
                        DType::kUInt8, whole.device());
  };
  if (buffer.parts().empty()) return view(buffer, offset, num_bytes);
  std::vector<Buffer> kept;
  std::size_t first = 0;
  for (const Buffer& part : buffer.parts()) {
    const std::size_t from = std::max(offset, first);
    const std::size_t to = std::min(offset + num_bytes, first + part.num_bytes());
    if (from < to) kept.push_back(view(part, from - first, to - from));
    first += part.num_bytes();
  }
  if (kept.empty()) return view(buffer.parts().front(), 0, 0);
  return kept.size() == 1 ? kept.front() : Buffer::InParts(std::move(kept));
}

Buffer ConcatenateRows(const std::vector<Buffer>& parts) {
  if (parts.empty())
    throw std::invalid_argument("concatenation of rows: expected at least one part, got none");
  Shape shape = parts.front().shape();
  std::int64_t num_rows = 0;
  std::vector<const Buffer*> filled;
  for (const Buffer& part : parts) {
    CheckSameRows(parts.front(), part);
    if (!part.local())
      throw std::invalid_argument("concatenation of rows: a part is in another process");
    num_rows += part.num_rows();
    if (part.num_rows() == 0) continue;
    if (part.parts().empty()) {
      filled.push_back(&part);
    } else {
      for (const Buffer& piece : part.parts()) filled.push_back(&piece);
    }
  }
  if (filled.empty()) return parts.front();
  if (filled.size() == 1) return *filled.front();
  shape.front() = num_rows;
  const Buffer& first = *filled.front();
  if (AreNeighbours(filled)) {
    return Buffer::Wrap(first.owner(), first.data(), std::move(shape), first.dtype(),
                        first.device());
  }
  if (std::any_of(filled.begin(), filled.end(), [](const Buffer* p) { return !p->on_host(); })) {
    std::vector<Buffer> pieces;
    for (const Buffer* part : filled) pieces.push_back(*part);
    return Buffer::InParts(std::move(pieces));
  }
  Buffer whole = Buffer::Allocate(std::move(shape), first.dtype());
  std::byte* target = whole.data();
  for (const Buffer* part : filled) {
    std::memcpy(target, part->data(), part->num_bytes());
    target += part->num_bytes();
  }
  return whole;
}

}  // namespace troupe
