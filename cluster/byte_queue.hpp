// A bounded queue of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace troupe {

/// First in, first out. Touches its memory only as far as it has been filled.
class ByteQueue {
 public:
  explicit ByteQueue(std::size_t capacity)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  bool empty() const { return begin_ == end_; }
  bool full() const { return end_ - begin_ == capacity_; }
  /// The content, oldest first.
  std::span<const std::byte> data() const { return {bytes_.get() + begin_, end_ - begin_}; }
  /// Where to write the next bytes; empty only if the queue is full. Call Added afterwards.
  std::span<std::byte> room() {
    // Moves the content at most once per quarter of the capacity received.
    if (begin_ > 0 && capacity_ - end_ < capacity_ / 4) {
      std::copy(bytes_.get() + begin_, bytes_.get() + end_, bytes_.get());
      end_ -= begin_;
      begin_ = 0;
    }
    return {bytes_.get() + end_, capacity_ - end_};
  }
  void Added(std::size_t num_bytes) { end_ += num_bytes; }
  void Remove(std::size_t num_bytes) {
    begin_ += num_bytes;
    if (begin_ == end_) Clear();
  }
  void Clear() { begin_ = end_ = 0; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace troupe
