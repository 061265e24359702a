// What a stage waits for and what it owes, out of its state.
#include <algorithm>

#include "actors/names.hpp"
#include "actors/stage_actor.hpp"

namespace troupe {
namespace {

/// Whom this stage still has to answer.
void AddOwed(const StageState& s, std::vector<Owed>& owes) {
  for (const auto& open : s.rounds)
    owes.push_back({asked::kReport, open.round.number, kDirectorName});
  for (const auto& fed : s.fed) owes.push_back({asked::kTaking, fed.input.unit, s.config.feed});
  for (std::size_t l = 0; l < s.arrived.size(); ++l) {
    for (const auto& arrived : s.arrived[l]) {
      owes.push_back({asked::kGradient, arrived.activation.unit, s.config.in[l].from});
    }
  }
  for (const auto& [unit, flight] : s.flights) {
    if (flight.feed.pending()) owes.push_back({asked::kTaking, unit, s.config.feed});
    for (std::size_t l = 0; l < flight.askers.size(); ++l) {
      if (!flight.answered[l]) owes.push_back({asked::kGradient, unit, s.config.in[l].from});
    }
  }
}

/// What the next forward lacks.
void AddForwardWaits(const StageState& s, std::vector<Wait>& waits) {
  const std::int64_t unit = s.counters.forwards;
  StageCounters with_it = s.counters;  // would the rule run it if it were here?
  with_it.activations = std::max(with_it.activations, unit + 1);
  if (NextPass(with_it, RuleOf(s)) != Pass{PassKind::kForward, unit}) return;
  for (std::size_t l = 0; l < s.activations.size(); ++l) {
    if (s.activations[l] > unit) continue;
    const std::string& from = s.config.in[l].from;
    if (s.announced[l] > unit) {
      waits.push_back({"bytes of the activation from " + from, "microbatch", unit, "", false});
    } else {
      waits.push_back({"activation", "microbatch", unit, from, false, asked::kGradient});
    }
  }
  if (s.config.reads_data && s.inputs <= unit) {
    waits.push_back({"input", "microbatch", unit, s.config.feed, false, asked::kTaking});
  }
}

/// What others have been asked for.
void AddAnswerWaits(const StageState& s, std::vector<Wait>& waits) {
  if (s.updating) {
    waits.push_back(
        {asked::kUpdate, "round", s.rounds.front().round.number, s.config.update_name, true});
  }
  for (const Pass& pass : s.running) {
    const char* what = pass.kind == PassKind::kForward    ? asked::kForward
                       : pass.kind == PassKind::kBackward ? asked::kBackward
                                                          : asked::kWeights;
    waits.push_back(
        {OnRanks(what, s.config.ranks), "microbatch", pass.unit, s.config.lock_step, true});
  }
  for (const auto& [unit, flight] : s.flights) {
    for (std::size_t l = 0; flight.sent && l < s.config.out.size(); ++l) {
      if (!flight.announced[l]) {
        waits.push_back({asked::kGradient, "microbatch", unit, s.config.out[l].name, true});
      } else if (flight.missing[l] > 0) {
        waits.push_back(
            {"bytes of the gradient from " + s.config.out[l].name, "microbatch", unit, "", false});
      }
    }
  }
}

}  // namespace

Waits WaitsOf(const StageState& s) {
  ActorWaits mine;
  mine.who = "stage " + s.config.name;
  if (!s.failed) {
    AddOwed(s, mine.owes);
    AddForwardWaits(s, mine.waits);
    AddAnswerWaits(s, mine.waits);
  }
  return {{mine}};
}

}  // namespace troupe
