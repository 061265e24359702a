#include "data/order/grouped_order.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "layout/mix_bits.hpp"

namespace troupe {
namespace {

/// Rounds overlap by a step, and evaluations do not ask.
constexpr std::size_t kKeptSteps = 4;
/// A step may span two.
constexpr std::size_t kKeptWindows = 2;

std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Removes the entry of the smallest key other than `key`, if there are more than `most`.
template <class Map>
void Limit(Map& map, std::size_t most, const typename Map::key_type& key) {
  if (map.size() <= most) return;
  map.erase(map.begin()->first == key ? std::prev(map.end()) : map.begin());
}

}  // namespace

GroupedOrder::GroupedOrder(GroupTerms terms) : terms_(std::move(terms)) {
  if (std::min({terms_.group, terms_.size, terms_.window}) < 1) {
    throw std::invalid_argument("grouped order: expected groups of at least 1, got groups of " +
                                std::to_string(terms_.group) + ", " + std::to_string(terms_.size) +
                                " places and windows of " + std::to_string(terms_.window));
  }
  // Windows have about equal sizes: a short one would have few uniform steps.
  width_ = DivideUp(terms_.size, DivideUp(terms_.size, terms_.window));
  per_epoch_ = DivideUp(terms_.size, width_);
}

std::shared_ptr<const std::vector<std::int64_t>> GroupedOrder::RowsAt(
    const Interval& places) const {
  const std::lock_guard lock(mutex_);
  const std::pair key(places.begin, places.end);
  auto& rows = recent_[key];
  if (rows == nullptr) rows = std::make_shared<const std::vector<std::int64_t>>(Compute(places));
  const auto result = rows;
  Limit(recent_, kKeptSteps, key);
  return result;
}

std::vector<std::int64_t> GroupedOrder::Compute(const Interval& places) const {
  std::vector<Row> drawn;
  for (std::int64_t place = places.begin; place < places.end;) {
    const Window& window = WindowOf(NumberAt(place));
    for (; place < std::min(places.end, window.places.end); ++place) {
      drawn.push_back(RowAt(window, place));
    }
  }
  std::ranges::stable_sort(drawn, std::ranges::greater(), &Row::length);
  std::vector<std::int64_t> rows;
  for (const Row& row : drawn) rows.push_back(row.row);
  return rows;
}

std::int64_t GroupedOrder::NumberAt(std::int64_t place) const {
  return place / terms_.size * per_epoch_ + place % terms_.size / width_;
}

const GroupedOrder::Window& GroupedOrder::WindowOf(std::int64_t number) const {
  auto found = windows_.find(number);
  if (found == windows_.end()) found = windows_.emplace(number, MakeWindow(number)).first;
  Limit(windows_, kKeptWindows, number);
  return found->second;
}

GroupedOrder::Window GroupedOrder::MakeWindow(std::int64_t number) const {
  Window window;
  window.number = number;
  const std::int64_t epoch = number / per_epoch_ * terms_.size;
  const std::int64_t begin = number % per_epoch_ * width_;
  window.places = {epoch + begin, epoch + std::min(begin + width_, terms_.size)};
  const std::int64_t size = window.places.size();
  const std::int64_t group = terms_.group;
  window.head = std::min(size, (group - window.places.begin % group) % group);
  window.steps = (size - window.head) / group;

  std::map<std::uint64_t, Class> by_fields;
  for (std::int64_t place = window.places.begin; place < window.places.end; ++place) {
    const RowForm form = terms_.form_at(place);
    by_fields[form.fields].rows.push_back({form.row, form.length});
  }
  for (auto& entry : by_fields) {
    Class& each = window.classes.emplace_back(std::move(entry.second));
    // A class may fill a step for which the head of the window leaves no room.
    each.num_steps = std::min(std::ssize(each.rows) / group, window.steps - window.uniform);
    window.uniform += each.num_steps;
  }
  return window;
}

const GroupedOrder::Row& GroupedOrder::RowAt(const Window& window, std::int64_t place) const {
  const std::int64_t group = terms_.group;
  const std::int64_t index = place - window.places.begin;
  const std::int64_t mixed = (window.steps - window.uniform) * group;
  const std::int64_t in_steps = index - window.head;
  if (in_steps < 0) return Leftover(window, mixed + index);
  if (in_steps >= window.steps * group) {
    return Leftover(window, mixed + index - window.steps * group);
  }
  std::int64_t step =
      SampleOrder(MixBits(terms_.seed), window.number, in_steps / group, window.steps);
  const std::int64_t sample = in_steps % group;
  for (const Class& each : window.classes) {
    if (step < each.num_steps) return each.rows[static_cast<std::size_t>(step * group + sample)];
    step -= each.num_steps;
  }
  return Leftover(window, step * group + sample);
}

const GroupedOrder::Row& GroupedOrder::Leftover(const Window& window, std::int64_t index) const {
  for (const Class& each : window.classes) {
    const std::int64_t used = each.num_steps * terms_.group;
    const std::int64_t left = std::ssize(each.rows) - used;
    if (index < left) return each.rows[static_cast<std::size_t>(used + index)];
    index -= left;
  }
  throw std::logic_error("grouped order: a window has fewer rows than places");
}

}  // namespace troupe
