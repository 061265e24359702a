#include "schedule/stage_rule.hpp"

#include <algorithm>

#include "layout/text.hpp"

namespace troupe {
namespace {

using Choice = std::optional<Pass>;

/// The counter of the started passes of a kind.
std::int64_t StageCounters::*CounterOf(PassKind kind) {
  if (kind == PassKind::kForward) return &StageCounters::forwards;
  return kind == PassKind::kBackward ? &StageCounters::backwards : &StageCounters::weights;
}

Pass Forward(const StageCounters& c) { return NextOf(PassKind::kForward, c); }
Pass Backward(const StageCounters& c) { return NextOf(PassKind::kBackward, c); }
Pass Weights(const StageCounters& c) { return NextOf(PassKind::kWeight, c); }

bool ForwardIsHere(const StageCounters& c) {
  return c.activations > c.forwards && c.forwards < c.horizon;
}
bool BackwardIsHere(const StageCounters& c) { return c.gradients > c.backwards; }

bool IsHere(PassKind kind, const StageCounters& c) {
  if (kind == PassKind::kForward) return ForwardIsHere(c);
  return kind == PassKind::kBackward ? BackwardIsHere(c) : c.backwards > c.weights;
}

Choice Next1F1B(const StageCounters& c, std::int64_t limit) {
  const bool may_forward = ForwardIsHere(c) && c.forwards - c.backwards < limit;
  const bool warming_up = c.forwards - c.round_begin < limit;
  if (may_forward && warming_up) return Forward(c);
  if (BackwardIsHere(c)) return Backward(c);
  if (may_forward) return Forward(c);
  return std::nullopt;
}

Choice NextGpipe(const StageCounters& c) {
  if (ForwardIsHere(c)) return Forward(c);
  if (c.forwards == c.horizon && BackwardIsHere(c)) return Backward(c);
  return std::nullopt;
}

/// The end of the window in which forwards may run.
std::int64_t WindowEnd(const StageCounters& c, const StageRule& rule) {
  if (!rule.window) return c.horizon;
  const std::int64_t windows = (c.backwards - c.round_begin) / *rule.window + 1;
  return std::min(c.horizon, c.round_begin + windows * *rule.window);
}

/// An order that does not depend on arrivals; see the header.
Choice NextFixed(const StageCounters& c, const StageRule& rule) {
  const std::int64_t owed = rule.splits_backward ? c.backwards - c.weights : 0;
  if (rule.splits_backward && owed > rule.weight_limit - rule.limit) return Weights(c);
  if (c.forwards < WindowEnd(c, rule) && c.forwards - c.backwards < rule.limit) {
    if (ForwardIsHere(c)) return Forward(c);
    if (!rule.forwards_may_lack_room) return std::nullopt;
  }
  if (c.backwards < c.forwards) return BackwardIsHere(c) ? Choice(Backward(c)) : std::nullopt;
  return owed > 0 ? Choice(Weights(c)) : std::nullopt;
}

Choice NextOrdered(const StageCounters& c, const StageRule& rule) {
  std::int64_t started = c.forwards + c.backwards - 2 * c.round_begin;
  if (rule.splits_backward) started += c.weights - c.round_begin;
  if (started >= static_cast<std::int64_t>(rule.order.size())) return std::nullopt;
  const PassKind kind = rule.order[static_cast<std::size_t>(started)].kind;
  return IsHere(kind, c) ? Choice(NextOf(kind, c)) : std::nullopt;
}

}  // namespace

std::string ToString(const Pass& pass) {
  return "FBW"[static_cast<std::size_t>(pass.kind)] + std::to_string(pass.unit);
}

std::string ToString(const std::vector<Pass>& order) {
  return Listed(order, " ", [](const Pass& pass) { return ToString(pass); });
}

Pass NextOf(PassKind kind, const StageCounters& c) { return {kind, c.*CounterOf(kind)}; }

std::optional<Pass> NextPass(const StageCounters& c, const StageRule& rule) {
  if (c.busy) return std::nullopt;
  switch (rule.kind) {
    case RuleKind::k1F1B:
      return rule.fixed ? NextFixed(c, rule) : Next1F1B(c, rule.limit);
    case RuleKind::kGpipe:
      return NextGpipe(c);
    case RuleKind::kZbH1:
      return rule.fixed || rule.splits_backward ? NextFixed(c, rule) : Next1F1B(c, rule.limit);
    case RuleKind::kOrdered:
      return NextOrdered(c, rule);
  }
  return std::nullopt;
}

std::optional<std::int64_t> NextBackward(StageCounters c, const StageRule& rule) {
  c.busy = false;
  c.activations = c.horizon;
  c.gradients = c.forwards;
  for (auto pass = NextPass(c, rule); pass; pass = NextPass(c, rule)) {
    if (pass->kind == PassKind::kBackward) return pass->unit;
    if (pass->kind == PassKind::kForward) break;
    CountStarted(c, *pass);
  }
  return std::nullopt;
}

void CountStarted(StageCounters& c, const Pass& pass) { ++(c.*CounterOf(pass.kind)); }

bool AllStarted(const StageCounters& c, const StageRule& rule) {
  return c.forwards == c.horizon && c.backwards == c.horizon &&
         (!rule.splits_backward || c.weights == c.horizon);
}

}  // namespace troupe
