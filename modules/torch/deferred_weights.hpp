// Defers the weights' part of a backward: the gradient of a large weight is computed through
// RunOrDefer, and a stage whose backwards are split collects that work and runs it later.
#pragma once

#include <functional>
#include <vector>

namespace troupe {

/// In the order in which a whole backward would have done it. Holds the activations and gradients
/// that it multiplies. The head's reads its weights again, so it must run before the update.
using WeightWork = std::vector<std::function<void()>>;

/// While it lives, RunOrDefer on this thread appends to `work`. (The autograd engine runs a graph
/// on the calling thread: see RunBackwardOnCallingThread.)
class DeferWeights {
 public:
  explicit DeferWeights(WeightWork& work);
  ~DeferWeights();
  DeferWeights(const DeferWeights&) = delete;
  DeferWeights& operator=(const DeferWeights&) = delete;
};

/// Whether a DeferWeights exists on this thread.
bool WeightsAreDeferred();

/// Runs `work` at once, or defers it if a DeferWeights exists on this thread.
void RunOrDefer(std::function<void()> work);

}  // namespace troupe
