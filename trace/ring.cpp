#include "trace/ring.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace troupe {

Ring::Ring(std::size_t capacity) : slots_(capacity) {
  if (capacity == 0) throw std::invalid_argument("ring capacity is 0, expected at least 1");
}

void Ring::Push(const PassRecord& record) {
  using Words = std::array<std::uint64_t, kWords>;
  const auto words = std::bit_cast<Words>(record);
  const std::uint64_t number = finished_.load(std::memory_order_relaxed);
  started_.store(number + 1, std::memory_order_relaxed);
  // Release, so that a reader who sees any word of this record also sees that it was started. (A
  // fence would do the same; thread sanitizers do not understand fences.)
  Slot& slot = slots_[number % slots_.size()];
  for (std::size_t w = 0; w < kWords; ++w) slot[w].store(words[w], std::memory_order_release);
  finished_.store(number + 1, std::memory_order_release);
}

RingSnapshot Ring::Snapshot(std::uint64_t from) const {
  const std::uint64_t capacity = slots_.size();
  const std::uint64_t end = num_pushed();
  const std::uint64_t oldest = end > capacity ? end - capacity : 0;
  RingSnapshot snapshot{.first = std::min(end, std::max(from, oldest)), .records = {}};
  snapshot.records.reserve(end - snapshot.first);
  for (std::uint64_t number = snapshot.first; number < end; ++number) {
    std::array<std::uint64_t, kWords> words;
    const Slot& slot = slots_[number % capacity];
    for (std::size_t w = 0; w < kWords; ++w) words[w] = slot[w].load(std::memory_order_acquire);
    snapshot.records.push_back(std::bit_cast<PassRecord>(words));
  }
  // Whatever the producer has begun to overwrite meanwhile may be torn.
  const std::uint64_t started = started_.load(std::memory_order_relaxed);
  const std::uint64_t intact = started > capacity ? started - capacity : 0;
  if (intact > snapshot.first) {
    const std::uint64_t torn = std::min(intact - snapshot.first, end - snapshot.first);
    snapshot.records.erase(snapshot.records.begin(),
                           snapshot.records.begin() + static_cast<std::ptrdiff_t>(torn));
    snapshot.first += torn;
  }
  return snapshot;
}

std::uint64_t Ring::num_dropped() const {
  const std::uint64_t pushed = num_pushed();
  return pushed > slots_.size() ? pushed - slots_.size() : 0;
}

}  // namespace troupe
