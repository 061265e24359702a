#include "kinds/work.hpp"

namespace troupe {

double Product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

PassFlops& PassFlops::operator+=(const PassFlops& other) {
  forward += other.forward;
  backward += other.backward;
  weights += other.weights;
  return *this;
}

void FlopCounter::AddLinear(std::int64_t rows, std::int64_t out, std::int64_t in, bool first) {
  const double once = 2.0 * static_cast<double>(rows) * Product(out, in);
  const bool input_gradient = asked_ || (trains_ && !first);
  flops_.forward += once;
  flops_.weights += once * int{trains_};
  flops_.backward += once * (int{trains_} + int{input_gradient});
}

void FlopCounter::AddAttention(double pairs, std::int64_t width) {
  const double once = 4.0 * pairs * static_cast<double>(width);
  flops_.forward += once;
  if (asked_ || trains_) flops_.backward += 2.0 * once;
}

std::int64_t RankWork::KeptOfRow(std::int64_t hidden, std::int64_t row,
                                 std::int64_t weights) const {
  if (recompute == Recompute::kFull) return hidden;
  return recompute == Recompute::kAttention ? row : row + weights;
}

}  // namespace troupe
