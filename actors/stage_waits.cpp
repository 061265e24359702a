// What a stage waits for without having asked for it, from its counters.
#include <algorithm>

#include "actors/stage_actor.hpp"

namespace troupe {
namespace {

using What = ExpectedWait::What;

/// What the next forward lacks.
void AddForward(const StageState& s, ExpectedWaits& expected) {
  const std::int64_t unit = s.counters.forwards;
  StageCounters with_it = s.counters;  // would the rule run it if it were here?
  with_it.activations = std::max(with_it.activations, unit + 1);
  if (NextPass(with_it, RuleOf(s)) != Pass{PassKind::kForward, unit}) return;
  for (std::size_t l = 0; l < s.activations.size(); ++l) {
    if (s.activations[l] > unit) continue;
    const What what = s.announced[l] > unit ? What::kRequestBytes : What::kRequest;
    expected.push_back({what, KindOf<Activation>(), unit, s.config.in[l].from});
  }
  if (s.config.reads_data && s.inputs <= unit) {
    expected.push_back({What::kRequest, KindOf<Input>(), unit, s.config.feed});
  }
}

}  // namespace

ExpectedWaits ExpectedBy(const StageState& s) {
  ExpectedWaits expected;
  if (s.failed) return expected;
  AddForward(s, expected);
  for (const auto& [unit, flight] : s.flights) {
    for (std::size_t l = 0; l < flight.missing.size(); ++l) {
      if (flight.missing[l] == 0) continue;
      expected.push_back({What::kAnswerBytes, KindOf<Activation>(), unit, s.config.receivers[l]});
    }
  }
  return expected;
}

}  // namespace troupe
