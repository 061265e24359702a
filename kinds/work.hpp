// The computation and kept activations of a part of a stage, for estimates of FLOPs and memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kinds/enum_set.hpp"

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

/// A part of a layer that may be computed again in the backward instead of being kept.
enum class LayerPart : std::uint8_t {
  kAttention,  ///< from the first norm to the outputs of the heads
  kMlpUp,  ///< from the second norm to the inputs of the last linear; with experts without the norm
  kMlp,    ///< all after the residual in the middle
  kLayer   ///< all but the input
};
/// In the order of LayerPart.
inline const std::vector<std::string> kLayerPartWords = {"attention", "mlp.up", "mlp", "full"};

/// The parts that are computed again.
using Recompute = EnumSet<LayerPart>;

/// The elements of a row of a layer between its residuals.
struct LayerRow {
  std::int64_t hidden = 0;
  std::int64_t attention = 0;  ///< between the first norm and the outputs of the heads
  std::int64_t heads = 0;      ///< these outputs
  std::int64_t mlp_up = 0;     ///< between the second norm and the inputs of the last linear
  std::int64_t mlp_rest = 0;   ///< these inputs, and with experts what else the MLP keeps
  bool up_has_norm = true;     ///< kMlpUp begins with the second norm
};

/// The work of one rank.
struct RankWork {
  std::int64_t samples = 0;  ///< of a microbatch, with one item of the most rows each
  int tp = 1;                ///< number of parts into which wide rows are cut
  int etp = 1;               ///< number of parts of each expert
  int cp = 1;                ///< number of parts into which each item or sample is cut
  bool cuts_rows = false;    ///< so are the rows between linear layers
  Recompute recompute = {};

  /// Returns the elements of it that a layer keeps.
  std::int64_t KeptOf(const LayerRow& row) const {
    const std::int64_t own = cuts_rows ? CeilDivide(row.hidden, tp) : row.hidden;
    if (recompute.Has(LayerPart::kLayer)) return own;
    std::int64_t kept = 2 * own + row.heads;  // both residuals
    if (!recompute.Has(LayerPart::kAttention)) kept += own + row.attention;
    if (recompute.Has(LayerPart::kMlp)) return kept;
    const bool up = recompute.Has(LayerPart::kMlpUp);
    kept += row.mlp_rest + (up ? 0 : row.mlp_up);
    return kept + (up && row.up_has_norm ? 0 : own);
  }
};

}  // namespace troupe
