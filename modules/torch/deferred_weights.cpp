#include "modules/torch/deferred_weights.hpp"

#include <utility>

namespace troupe {
namespace {

thread_local WeightWork* collecting = nullptr;

}  // namespace

DeferWeights::DeferWeights(WeightWork& work) { collecting = &work; }
DeferWeights::~DeferWeights() { collecting = nullptr; }

bool WeightsAreDeferred() { return collecting != nullptr; }

void RunOrDefer(std::function<void()> work) {
  if (!WeightsAreDeferred()) return work();
  collecting->push_back(std::move(work));
}

}  // namespace troupe
