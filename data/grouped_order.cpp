#include "data/grouped_order.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "data/sample_order.hpp"
#include "layout/mix_bits.hpp"

namespace troupe {
namespace {

/// Rounds overlap by a step, and evaluations do not ask.
constexpr std::size_t kKeptSteps = 4;

}  // namespace

GroupedOrder::GroupedOrder(std::uint64_t seed, std::int64_t group, const std::vector<RowForm>& rows)
    : seed_(seed), group_(group), size_(std::ssize(rows)) {
  if (group < 1) {
    throw std::invalid_argument("grouped order: expected groups of at least 1, got " +
                                std::to_string(group));
  }
  std::map<std::uint64_t, Class> by_fields;
  for (const RowForm& row : rows) {
    by_fields[row.fields].rows.push_back(std::ssize(lengths_));
    lengths_.push_back(row.length);
  }
  for (auto& entry : by_fields) classes_.push_back(std::move(entry.second));
}

std::shared_ptr<const std::vector<std::int64_t>> GroupedOrder::RowsAt(
    const Interval& places) const {
  const std::lock_guard lock(mutex_);
  const std::pair key(places.begin, places.end);
  auto& rows = recent_[key];
  if (rows == nullptr) rows = std::make_shared<const std::vector<std::int64_t>>(Compute(places));
  const auto result = rows;
  if (recent_.size() > kKeptSteps) {
    recent_.erase(recent_.begin()->first == key ? std::prev(recent_.end()) : recent_.begin());
  }
  return result;
}

std::vector<std::int64_t> GroupedOrder::Compute(const Interval& places) const {
  std::vector<std::int64_t> rows;
  Epoch epoch = EpochOf(places.begin / size_);
  for (std::int64_t place = places.begin; place < places.end; ++place) {
    if (place / size_ != epoch.number) epoch = EpochOf(place / size_);
    rows.push_back(RowAt(epoch, place % size_));
  }
  std::stable_sort(rows.begin(), rows.end(), [this](std::int64_t a, std::int64_t b) {
    return lengths_[static_cast<std::size_t>(a)] > lengths_[static_cast<std::size_t>(b)];
  });
  return rows;
}

GroupedOrder::Epoch GroupedOrder::EpochOf(std::int64_t number) const {
  Epoch epoch;
  epoch.number = number;
  const std::int64_t begun = number * size_ % group_;
  epoch.head = std::min(size_, (group_ - begun) % group_);
  epoch.steps = (size_ - epoch.head) / group_;
  for (const Class& each : classes_) {
    // A class may fill a step for which the head of the epoch leaves no room.
    const std::int64_t room = epoch.steps - epoch.uniform;
    epoch.of_class.push_back(std::min(each.num_rows() / group_, room));
    epoch.uniform += epoch.of_class.back();
  }
  return epoch;
}

std::int64_t GroupedOrder::RowAt(const Epoch& epoch, std::int64_t index) const {
  const std::int64_t mixed = (epoch.steps - epoch.uniform) * group_;
  const std::int64_t in_steps = index - epoch.head;
  if (in_steps < 0) return Leftover(epoch, mixed + index);
  if (in_steps >= epoch.steps * group_) {
    return Leftover(epoch, mixed + index - epoch.steps * group_);
  }
  std::int64_t group = SampleOrder(MixBits(seed_), epoch.number, in_steps / group_, epoch.steps);
  const std::int64_t sample = in_steps % group_;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (group < epoch.of_class[c]) return Drawn(epoch, c, group * group_ + sample);
    group -= epoch.of_class[c];
  }
  return Leftover(epoch, group * group_ + sample);
}

std::int64_t GroupedOrder::Drawn(const Epoch& epoch, std::size_t of_class,
                                 std::int64_t index) const {
  const Class& drawn = classes_[of_class];
  // Classes of the same size must not be drawn in the same order.
  const std::uint64_t key = seed_ ^ MixBits(of_class + 1);
  const std::int64_t place = SampleOrder(key, epoch.number, index, drawn.num_rows());
  return drawn.rows[static_cast<std::size_t>(place)];
}

std::int64_t GroupedOrder::Leftover(const Epoch& epoch, std::int64_t index) const {
  for (std::size_t c = 0;; ++c) {
    const std::int64_t used = epoch.of_class[c] * group_;
    const std::int64_t left = classes_[c].num_rows() - used;
    if (index < left) return Drawn(epoch, c, used + index);
    index -= left;
  }
}

}  // namespace troupe
