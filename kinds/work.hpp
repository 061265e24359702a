// The computation and kept activations of a part of a stage, for estimates of FLOPs and memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kinds/enum_set.hpp"
#include "kinds/parameter.hpp"

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

/// A linear layer, by its whole weight and the rows of all ranks that share it.
struct LinearWork {
  std::int64_t rows = 0;
  std::int64_t out = 0;
  std::int64_t in = 0;
  Cut cut = Cut::kNone;  ///< of the weight over tp: kRows, kColumns or kNone
  /// The last of `out`, which are cut by key and value heads where there are `kv_heads`.
  std::int64_t kv_out = 0;
  std::int64_t kv_heads = 0;
  bool first = false;  ///< of its part: its input has a gradient only if an earlier part trains
};

/// Scores and weighted sums of rows of positions that see each other.
struct AttentionWork {
  std::int64_t rows = 0;      ///< of queries
  double pairs = 0.0;         ///< of a query and a key that it sees
  std::int64_t heads = 0;     ///< of queries
  std::int64_t width = 0;     ///< of the queries of all heads
  std::int64_t kv_width = 0;  ///< of the keys of all heads
  std::int64_t kv_heads = 0;  ///< if ranks may share some; else 0
};

/// Work that goes over elements, such as a norm, and whose time is that of reading and writing them.
struct ElementWork {
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< elements of a row
  double forward = 0.0;    ///< how many rows of this width a forward reads and writes for each
  double backward = 0.0;   ///< and its backward
  bool inside = false;     ///< between linear layers that tp cuts, so tp cuts it too
};

/// A norm reads a row and writes one; its backward reads two and writes one.
inline ElementWork NormWork(std::int64_t rows, std::int64_t width) {
  return {.rows = rows, .width = width, .forward = 2.0, .backward = 3.0};
}
/// A residual adds two rows; its backward adds the gradients of both branches.
inline ElementWork ResidualWork(std::int64_t rows, std::int64_t width) {
  return {.rows = rows, .width = width, .forward = 3.0, .backward = 3.0};
}

/// The experts of one layer and their router, for which rows are cut over tp.
struct ExpertWork {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t hidden = 0;     ///< inside an expert, which has a gate
  std::int64_t per_token = 0;  ///< experts that get each row
  std::int64_t count = 0;      ///< of the layer
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

/// Receives the operations of a forward, in the order in which they run. Those of a backward follow
/// from them.
class WorkList {
 public:
  WorkList() = default;
  WorkList(const WorkList&) = delete;
  WorkList& operator=(const WorkList&) = delete;
  virtual ~WorkList() = default;

  virtual void AddLinear(const LinearWork& linear) = 0;
  virtual void AddAttention(const AttentionWork& attention) = 0;
  virtual void AddElements(const ElementWork& /*elements*/) {}
  virtual void AddExperts(const ExpertWork& experts) = 0;

  /// Operations that are added from now on belong to that part of a layer; nothing: before or after
  /// the layers. kMlp: what kMlpUp leaves of it; kLayer: what is in no other part.
  void Enter(std::optional<LayerPart> part) { part_ = part; }

 protected:
  std::optional<LayerPart> part() const { return part_; }

 private:
  std::optional<LayerPart> part_;
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

/// Adds up the matrix products of one module or projector, whatever its layout.
class FlopCounter : public WorkList {
 public:
  /// `trains`: its weights have gradients. `input_gradient`: its input has one.
  FlopCounter(bool trains, bool input_gradient) : trains_(trains), asked_(input_gradient) {}

  void AddLinear(const LinearWork& linear) override {
    AddProduct(linear.rows, linear.out, linear.in, asked_ || (trains_ && !linear.first));
  }
  /// The gradient of a product of two activations is two products.
  void AddAttention(const AttentionWork& attention) override {
    const double once = 4.0 * attention.pairs * static_cast<double>(attention.width);
    flops_.forward += once;
    if (asked_ || trains_) flops_.backward += 2.0 * once;
  }
  void AddExperts(const ExpertWork& experts) override {
    AddProduct(experts.rows, experts.count, experts.width, asked_ || trains_);
    AddProduct(experts.rows * experts.per_token, 3 * experts.hidden, experts.width,
               asked_ || trains_);
  }

  const PassFlops& flops() const { return flops_; }

 private:
  void AddProduct(std::int64_t rows, std::int64_t out, std::int64_t in, bool input_gradient) {
    const double once = 2.0 * static_cast<double>(rows) * Product(out, in);
    flops_.forward += once;
    flops_.weights += once * int{trains_};
    flops_.backward += once * (int{trains_} + int{input_gradient});
  }

  bool trains_;
  bool asked_;
  PassFlops flops_;
};

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

/// Elements that a pass needs for a while in one layer, besides those that layers keep.
struct LayerSpace {
  std::int64_t rows = 0;  ///< backward: gradients of rows, and what is computed again
  std::int64_t up = 0;    ///< backward: gradients of the inputs of the MLP's activation
  std::int64_t rest = 0;  ///< backward: gradients of its outputs, or as many that it computes with
  std::int64_t forward = 0;  ///< a forward that keeps nothing

  LayerSpace operator*(std::int64_t times) const {
    return {rows * times, up * times, rest * times, forward * times};
  }
};

/// The most rows whose logits are computed at once: enough for fast products, few enough that a
/// microbatch never has all of its logits in memory. `copies`: each product makes a copy as large as
/// the head, so a chunk takes more rows.
inline std::int64_t LogitRows(std::int64_t vocab, bool copies) {
  constexpr std::int64_t kElements = std::int64_t(1) << 22;
  return std::max<std::int64_t>(copies ? 1024 : 256, kElements / std::max<std::int64_t>(1, vocab));
}

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

  /// Returns what a pass of it needs in a layer. A backward needs most in the activation of the MLP,
  /// when the outputs of the activation are gone and nothing else of the layer is.
  LayerSpace SpaceOf(const LayerRow& row) const {
    const std::int64_t own = cuts_rows ? CeilDivide(row.hidden, tp) : row.hidden;
    const std::int64_t wide = row.mlp_up + row.mlp_rest;
    LayerSpace space{
        .rows = own, .up = row.mlp_up, .rest = row.mlp_rest, .forward = 3 * own + wide};
    if (recompute.Has(LayerPart::kLayer)) {
      RankWork whole = *this;
      whole.recompute = {};
      space.rows += whole.KeptOf(row);  // with its output in place of its input, which is kept
    } else if (recompute.Has(LayerPart::kMlp)) {
      space.rows += 2 * own + wide;
    } else if (recompute.Has(LayerPart::kMlpUp)) {
      space.rows += (row.up_has_norm ? own : 0) + wide;
    }
    return space;
  }
};

}  // namespace troupe
