// The proof side of `troupe verify`: the whole model in one place, trained by plain autograd.
// No layout, no actors, no transport. It shares the config structs, the sizes in kinds/, the
// initial values and the conversion of buffers to tensors with the sharded programs and nothing
// else, so that a mistake in their computation is not repeated here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "configs/config.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

class ExpertChoices;

/// The whole model of a Config (encoders, projectors, language models) and its AdamW state, in the
/// run's precision. Where that is bfloat16: in float64, from items and parameters that are rounded
/// to bfloat16 as the run's are, so that the two differ by what the run rounds after that and by
/// nothing else. Used on one thread.
class Reference {
 public:
  /// Throws std::invalid_argument for a module that does not compute, or an edge that does not lead
  /// from an encoder to a language model, or sizes that do not fit together.
  explicit Reference(const Config& config);
  ~Reference();
  Reference(Reference&&) noexcept;
  Reference& operator=(Reference&&) noexcept;

  /// One training step on the global batch `whole`: B samples, every encoder's items and positions
  /// filled. The gradients are those of the summed loss times `loss_scale` (1 / valid tokens);
  /// `step` counts from 0. Several language models add their losses and counts.
  /// Throws std::invalid_argument for inputs that are missing or do not fit together.
  /// `choices`: the experts of a run to follow; null: of none.
  LossSums Step(const Inputs& whole, double loss_scale, std::int64_t step,
                ExpertChoices* choices = nullptr);
  /// The same sums without a step.
  LossSums Evaluate(const Inputs& whole);

  /// Norm of all gradients of the last Step, before clipping; 0 before the first.
  double gradient_norm() const;
  /// Copies of all tensors of one kind, in order of their names: every parameter, but gradients
  /// (of the last Step, before clipping; zeros before the first) and moments of the trainable only.
  std::vector<TensorPiece> Tensors(TensorKind kind) const;
  /// Replaces every parameter; pieces may be cut and repeated in any way that covers each whole.
  /// The optimizer's state stays. Throws std::invalid_argument, changing nothing: an unknown name,
  /// a wrong shape, a parameter that the pieces do not fill with finite numbers.
  void SetParameters(const std::vector<TensorPiece>& pieces);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
