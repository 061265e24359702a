#include "layout/boxes.hpp"

#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "layout/shape.hpp"

namespace troupe {
namespace {

/// The elements of a box in a whole, in their order.
std::vector<std::int64_t> ElementsOf(const Shape& whole, const Box& box) {
  std::vector<std::int64_t> elements;
  for (std::int64_t i = 0; i < NumElements(box.shape); ++i) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t d = whole.size(); d-- > 0;) {
      at += (rest % box.shape[d] + box.offsets[d]) * stride;
      rest /= box.shape[d];
      stride *= whole[d];
    }
    elements.push_back(at);
  }
  return elements;
}

}  // namespace

TEST_CASE("every run of elements is its boxes, one after another, and they are few") {
  for (const Shape& shape : {Shape{7}, Shape{3, 4}, Shape{1, 5}, Shape{5, 1}, Shape{3, 2, 4},
                             Shape{2, 3, 2, 2}, Shape{}}) {
    const std::int64_t total = NumElements(shape);
    for (std::int64_t begin = 0; begin <= total; ++begin) {
      for (std::int64_t end = begin; end <= total; ++end) {
        std::vector<std::int64_t> found;
        const std::vector<Box> boxes = BoxesOf(shape, {begin, end});
        for (const Box& box : boxes) {
          REQUIRE(box.shape.size() == shape.size());
          REQUIRE(box.offsets.size() == shape.size());
          for (const std::int64_t element : ElementsOf(shape, box)) found.push_back(element);
        }
        std::vector<std::int64_t> expected;
        for (std::int64_t i = begin; i < end; ++i) expected.push_back(i);
        INFO(ToString(shape) << " from " << begin << " to " << end);
        REQUIRE(found == expected);
        REQUIRE(boxes.size() <=
                std::max<std::size_t>(1, 2 * shape.size()) - (shape.empty() ? 0 : 1));
      }
    }
    REQUIRE(BoxesOf(shape, {0, total}).size() == 1);
  }
}

TEST_CASE("the ends of a run that cuts rows are boxes of one row") {
  CHECK(BoxesOf({4, 3}, {2, 11}) ==
        std::vector<Box>{{{0, 2}, {1, 1}}, {{1, 0}, {2, 3}}, {{3, 0}, {1, 2}}});
  CHECK(BoxesOf({4, 3}, {3, 9}) == std::vector<Box>{{{1, 0}, {2, 3}}});
  CHECK(BoxesOf({4, 3}, {4, 5}) == std::vector<Box>{{{1, 1}, {1, 1}}});
  CHECK(BoxesOf({0, 3}, {0, 0}).empty());
}

}  // namespace troupe
