#include "layout/shape.hpp"

#include "layout/text.hpp"

namespace troupe {

std::string ToString(const Shape& shape) {
  return "[" + Listed(shape, ", ", [](std::int64_t size) { return std::to_string(size); }) + "]";
}

}  // namespace troupe
