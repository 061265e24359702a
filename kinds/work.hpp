// The computation and kept activations of a part of a stage, for estimates of FLOPs and memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace troupe {

inline double Product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}
inline std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The work of a step, over all microbatches and replicas.
struct StepShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;  ///< of each sample, encoder rows and padding included
  std::int64_t labels = 0;  ///< rows that go through the head: tokens that have a label
  std::map<std::string, std::int64_t> lengths =
      {};  ///< by module: total length of the items of its field
};

/// Floating-point operations; a multiplication and an addition are two.
struct PassFlops {
  double forward = 0.0;
  double backward = 0.0;
  double weights = 0.0;  ///< the part of the backward that computes gradients of weights
  PassFlops& operator+=(const PassFlops& other) {
    forward += other.forward;
    backward += other.backward;
    weights += other.weights;
    return *this;
  }
  double total() const { return forward + backward; }
};

/// Adds up the matrix products of one module or projector.
class FlopCounter {
 public:
  /// `trains`: its weights have gradients. `input_gradient`: its input has one.
  FlopCounter(bool trains, bool input_gradient) : trains_(trains), asked_(input_gradient) {}

  /// Adds `rows` times a weight [out, in]. `first`: the product is the first of its part.
  void AddLinear(std::int64_t rows, std::int64_t out, std::int64_t in, bool first = false) {
    const double once = 2.0 * static_cast<double>(rows) * Product(out, in);
    const bool input_gradient = asked_ || (trains_ && !first);
    flops_.forward += once;
    flops_.weights += once * int{trains_};
    flops_.backward += once * (int{trains_} + int{input_gradient});
  }
  /// Adds scores and weighted sums of `pairs` of positions; all heads together are `width` wide.
  /// The gradient of a product of two activations is two products.
  void AddAttention(double pairs, std::int64_t width) {
    const double once = 4.0 * pairs * static_cast<double>(width);
    flops_.forward += once;
    if (asked_ || trains_) flops_.backward += 2.0 * once;
  }

  const PassFlops& flops() const { return flops_; }

 private:
  bool trains_;
  bool asked_;
  PassFlops flops_;
};

/// The part of a layer that is recomputed in its backward instead of kept.
enum class Recompute { kNone, kAttention, kFull };

/// The work of one rank.
struct RankWork {
  std::int64_t samples = 0;  ///< of a microbatch, with one item of the most rows each
  int tp = 1;                ///< number of parts into which wide rows are cut
  int etp = 1;               ///< number of parts of each expert
  int cp = 1;                ///< number of parts into which each item or sample is cut
  bool cuts_rows = false;    ///< so are the rows between linear layers
  Recompute recompute = Recompute::kNone;

  /// Returns the elements kept per row of a layer. `attention` is kept between its first norm and
  /// the outputs of its heads, `heads` are these outputs, `mlp` is kept in its MLP.
  std::int64_t KeptOfRow(std::int64_t hidden, std::int64_t attention, std::int64_t heads,
                         std::int64_t mlp) const {
    const std::int64_t own = cuts_rows ? CeilDivide(hidden, tp) : hidden;
    if (recompute == Recompute::kFull) return own;
    const std::int64_t first = recompute == Recompute::kAttention ? 0 : own + attention;
    return 3 * own + first + heads + mlp;
  }
};

}  // namespace troupe
