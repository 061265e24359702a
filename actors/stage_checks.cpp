#include "actors/stage_checks.hpp"

#include <algorithm>

#include "actors/stage_counts.hpp"
#include "modules/unit_samples.hpp"

namespace troupe {

std::string WrongLength(const StageConfig& config, const Round& round) {
  const StageRule& rule = config.rule;
  if (rule.kind != RuleKind::kOrdered || !round.train || !config.runs_backward) return {};
  const std::int64_t units = UnitsIn(round.microbatches, config.microbatches_per_unit);
  const std::int64_t passes = rule.splits_backward ? 3 : 2;
  const auto ordered = static_cast<std::int64_t>(rule.order.size()) / passes;
  if (ordered == units) return {};
  return config.name + ": expected a round of " + std::to_string(ordered) +
         " microbatches, which its order is for, got " + std::to_string(units);
}

std::string RowMismatch(const StageConfig& config, int link, const UnitPlace& place,
                        const Activation& activation, const Inputs& data) {
  const auto& source = config.in[static_cast<std::size_t>(link)].source;
  const auto expected = data.expected.find(source);
  if (expected == data.expected.end() || !activation.rows) return {};
  const RowTable& want = expected->second;
  const RowTable& got = *activation.rows;
  if (want == got) return {};
  const std::string where = config.name + ": edge from " + source + ", " + ToString(place);
  for (std::size_t i = 0; i < std::min(want.samples.size(), got.samples.size()); ++i) {
    if (want.samples[i] == got.samples[i] && want.rows[i] == got.rows[i]) continue;
    return where + ": expected " + std::to_string(want.rows[i]) + " rows of sample " +
           std::to_string(want.samples[i]) + ", got " + std::to_string(got.rows[i]) +
           " rows of sample " + std::to_string(got.samples[i]);
  }
  return where + ": expected " + std::to_string(want.samples.size()) + " samples, got " +
         std::to_string(got.samples.size());
}

std::string WrongUnit(const StageState& state, const std::string& what, std::int64_t expected,
                      const ActorId& from, std::int64_t got) {
  if (got == expected) return {};
  return state.config.name + ": expected the " + what + " of microbatch " +
         std::to_string(expected) + " from " + ToString(from) +
         InParentheses(PlaceOf(state, expected)) + ", got " + std::to_string(got);
}

}  // namespace troupe
