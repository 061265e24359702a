#include "layout/boxes.hpp"

#include <utility>

namespace troupe {
namespace {

/// Adds the boxes of `elements`, counted from the place at `offsets`, whose dimensions from
/// `offsets.size()` on are free.
void AddBoxes(const Shape& shape, std::vector<std::int64_t> offsets, Interval elements,
              std::vector<Box>& boxes) {
  if (elements.size() <= 0) return;
  const std::size_t dimension = offsets.size();
  const Shape inner_shape(shape.begin() + static_cast<std::ptrdiff_t>(dimension) + 1, shape.end());
  const std::int64_t inner = NumElements(inner_shape);
  const auto add_within = [&](std::int64_t row, const Interval& within) {
    std::vector<std::int64_t> at = offsets;
    at.push_back(row);
    AddBoxes(shape, std::move(at), within, boxes);
  };
  std::int64_t first = elements.begin / inner;
  const std::int64_t last = elements.end / inner;
  const Interval head{elements.begin % inner, first == last ? elements.end % inner : inner};
  if (head.begin > 0 || first == last) add_within(first++, head);
  if (first > last) return;
  if (first < last) {
    Box box{offsets, Shape(dimension, 1)};
    box.offsets.push_back(first);
    box.shape.push_back(last - first);
    box.offsets.resize(shape.size(), 0);
    box.shape.insert(box.shape.end(), inner_shape.begin(), inner_shape.end());
    boxes.push_back(std::move(box));
  }
  add_within(last, {0, elements.end % inner});
}

}  // namespace

std::vector<Box> BoxesOf(const Shape& shape, const Interval& elements) {
  std::vector<Box> boxes;
  if (shape.empty()) {
    if (elements.size() > 0) boxes.emplace_back();
  } else {
    AddBoxes(shape, {}, elements, boxes);
  }
  return boxes;
}

}  // namespace troupe
