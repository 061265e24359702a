#include "schedule/stage_rule.hpp"

namespace troupe {

std::string ToString(const Pass& pass) {
  return (pass.kind == PassKind::kForward ? "F" : "B") + std::to_string(pass.unit);
}

std::string ToString(const std::vector<Pass>& order) {
  std::string text;
  for (const Pass& pass : order) text += (text.empty() ? "" : " ") + ToString(pass);
  return text;
}

std::optional<Pass> NextPass(const StageCounters& c, std::int64_t limit) {
  if (c.busy) return std::nullopt;
  const bool may_forward =
      c.activations > c.forwards && c.forwards < c.horizon && c.forwards - c.backwards < limit;
  const bool may_backward = c.gradients > c.backwards;
  const bool warming_up = c.forwards - c.round_begin < limit;
  if (may_forward && warming_up) return Pass{PassKind::kForward, c.forwards};
  if (may_backward) return Pass{PassKind::kBackward, c.backwards};
  if (may_forward) return Pass{PassKind::kForward, c.forwards};
  return std::nullopt;
}

}  // namespace troupe
