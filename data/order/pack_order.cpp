#include "data/order/pack_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "data/order/sample_order.hpp"

namespace troupe {

std::vector<std::vector<std::size_t>> MakePacks(std::span<const std::int64_t> tokens,
                                                std::int64_t room) {
  std::vector<std::size_t> longest_first(tokens.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::ranges::stable_sort(longest_first, std::ranges::greater(),
                           [&](std::size_t sample) { return tokens[sample]; });
  std::vector<std::vector<std::size_t>> packs;
  std::multimap<std::int64_t, std::size_t> by_room;  // packs by the tokens that still fit
  for (const std::size_t sample : longest_first) {
    const auto fullest = by_room.lower_bound(tokens[sample]);
    std::int64_t left = room;
    std::size_t pack = packs.size();
    if (fullest == by_room.end()) {
      packs.emplace_back();
    } else {
      left = fullest->first;
      pack = fullest->second;
      by_room.erase(fullest);
    }
    packs[pack].push_back(sample);
    by_room.emplace(left - tokens[sample], pack);
  }
  for (auto& pack : packs) std::ranges::sort(pack);
  std::ranges::sort(packs);
  return packs;
}

PackOrder::PackOrder(std::int64_t room, std::int64_t window,
                     std::function<std::int64_t(std::int64_t)> tokens_at,
                     std::optional<std::int64_t> end)
    : room_(room), window_(window), tokens_at_(std::move(tokens_at)), end_(end) {}

PackOrder::Packs PackOrder::PacksOf(std::int64_t begin, std::int64_t end) const {
  std::vector<std::int64_t> tokens;
  for (std::int64_t place = begin; place < end; ++place) tokens.push_back(tokens_at_(place));
  Packs packs;
  for (const auto& samples : MakePacks(tokens, room_)) {
    std::vector<std::int64_t>& places = packs.emplace_back();
    for (const std::size_t sample : samples) {
      places.push_back(begin + static_cast<std::int64_t>(sample));
    }
  }
  return packs;
}

const PackOrder::Packs& PackOrder::PacksIn(std::int64_t window) const {
  const auto known = windows_.find(window);
  if (known != windows_.end()) return known->second;
  constexpr std::size_t kMostKept = 4;
  if (windows_.size() >= kMostKept) windows_.erase(windows_.begin());
  const std::int64_t begin = window * window_;
  const std::int64_t end = end_ ? std::min(*end_, begin + window_) : begin + window_;
  return windows_.emplace(window, PacksOf(begin, end)).first->second;
}

std::optional<PackWindow> PackOrder::Find(std::int64_t pack) const {
  if (pack < first_packs_.front()) {
    first_window_ = 0;
    first_packs_ = {0};
  }
  while (first_packs_.back() <= pack) {
    const std::int64_t window = first_window_ + std::ssize(first_packs_) - 1;
    if (end_ && window * window_ >= *end_) return std::nullopt;
    first_packs_.push_back(first_packs_.back() + std::ssize(PacksIn(window)));
  }
  const auto found = std::prev(std::ranges::upper_bound(first_packs_, pack));
  return PackWindow{first_window_ + (found - first_packs_.begin()), *found};
}

std::vector<std::int64_t> PackOrder::PlacesIn(std::int64_t pack) const {
  const std::lock_guard lock(mutex_);
  const std::optional<PackWindow> window = Find(pack);
  if (!window) return {};
  return PacksIn(window->number)[static_cast<std::size_t>(pack - window->first_pack)];
}

PackWindow PackOrder::WindowOf(std::int64_t pack) const {
  const std::lock_guard lock(mutex_);
  return Find(pack).value();
}

void PackOrder::BeginAt(const PackWindow& window) {
  const std::lock_guard lock(mutex_);
  first_window_ = window.number;
  first_packs_ = {window.first_pack};
}

std::int64_t PackOrder::NumPacks(std::int64_t places) const {
  const std::int64_t whole = (kOrderWindow + window_ - 1) / window_ * window_;
  const std::int64_t read = end_ ? places : std::min(places, whole);
  std::int64_t packs = 0;
  for (std::int64_t begin = 0; begin < read; begin += window_) {
    packs += std::ssize(PacksOf(begin, std::min(read, begin + window_)));
  }
  if (read == places) return packs;
  return std::llround(static_cast<double>(packs) * static_cast<double>(places) /
                      static_cast<double>(read));
}

}  // namespace troupe
