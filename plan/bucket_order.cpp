#include "plan/bucket_order.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace troupe {

static auto OrderOf(const BucketKey& key) { return std::tuple(key.place, key.layer); }

BucketOrder::BucketOrder(const FlatLayout& layout, const std::vector<bool>& late)
    : complete_(late.size(), false) {
  std::map<std::string, std::size_t> parts;  // by their order
  std::vector<std::size_t> announced;
  for (std::size_t b = 0; b < layout.buckets().size(); ++b) {
    keys_.push_back(layout.buckets()[b].key);
    parts.emplace(keys_[b].part, parts.size());
    const bool by_gate = keys_[b].place != BucketPlace::kOutsideLayers && !late[b];
    (by_gate ? announced : forward_).push_back(b);
  }
  std::ranges::stable_sort(announced, std::less(), [&](std::size_t b) {
    return std::tuple(parts.at(keys_[b].part), OrderOf(keys_[b]));
  });
  std::stable_partition(forward_.begin(), forward_.end(), [&](std::size_t b) { return late[b]; });
  forward_.insert(forward_.end(), announced.begin(), announced.end());
  num_announced_ = announced.size();
}

GatePlace BucketOrder::GateOf(const std::string& part, BucketPlace place,
                              std::int64_t layer) const {
  const auto here = OrderOf({.part = part, .place = place, .layer = layer});
  GatePlace gate;
  for (const std::size_t b : forward_) {
    const BucketKey& key = keys_[b];
    if (key.part != part || key.place == BucketPlace::kOutsideLayers) continue;
    if (OrderOf(key) >= here) gate.complete.push_back(b);
    if (OrderOf(key) == here) gate.used.push_back(b);
  }
  return gate;
}

std::vector<std::size_t> BucketOrder::Leave(const GatePlace& gate) {
  for (const std::size_t b : gate.complete) complete_[b] = true;
  std::vector<std::size_t> ready;
  while (num_started_ < num_announced_) {
    const std::size_t next = forward_[forward_.size() - 1 - num_started_];
    if (!complete_[next]) break;
    ready.push_back(next);
    ++num_started_;
  }
  return ready;
}

std::vector<std::size_t> BucketOrder::Finish() {
  std::vector<std::size_t> rest(forward_.rbegin() + static_cast<std::ptrdiff_t>(num_started_),
                                forward_.rend());
  num_started_ = 0;
  std::fill(complete_.begin(), complete_.end(), false);
  return rest;
}

}  // namespace troupe
