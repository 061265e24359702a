// The encoder's state leaves its devices for the language model's phase.
#include <algorithm>
#include <utility>

#include "actors/phase_actor.hpp"

namespace troupe {
namespace {

using Place = PhaseState::Place;
using Window = PhaseState::Window;

/// Null: the phase has failed meanwhile.
Window* Find(PhaseState& s, std::int64_t unit) {
  const auto found = s.windows.find(unit);
  return found == s.windows.end() ? nullptr : &found->second;
}

/// The same command to all that offload, in one order with everything else on their ranks.
template <class Answer, class Command>
void Tell(PhasePointer self, std::int64_t unit, Command command, Place then) {
  PhaseState& s = self->state;
  ToSet<Command> set;
  for (const auto& [rank, stage] : s.config.offloads) {
    command.stage = stage;
    set.parts.emplace_back(rank, command);
  }
  const auto moved = [self, unit, then](const FromSet<Answer>&) {
    Window* const window = Find(self->state, unit);
    if (window == nullptr) return;
    window->state = then;
    StartRestoreIfDue(self, unit);
    if (then == Place::kHere && window->when_restored) {
      const auto phase3 = std::move(window->when_restored);
      phase3();  // ends the window
    }
  };
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then(moved, [self](const caf::error& reason) { Fail(self, reason); });
}

}  // namespace

void StartOffload(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  if (s.config.offloads.empty() || !window.train) return;
  window.state = Place::kLeaving;
  Tell<StateOffloaded>(self, unit, OffloadState{0, window.round, unit}, Place::kAway);
}

void StartRestoreIfDue(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  // Of a short window, too, the state is away until a gradient has come.
  const std::int64_t ahead = std::min(s.config.restore_ahead, window.microbatches - 1);
  const std::int64_t missing = ahead * s.config.language.layout().dp;
  if (window.state != Place::kAway) return;
  if (static_cast<std::int64_t>(window.missing_gradients) > missing) return;
  window.state = Place::kReturning;
  Tell<StateRestored>(self, unit, RestoreState{0, window.round, unit, window.last_of_round},
                      Place::kHere);
}

void WhenRestored(PhasePointer self, std::int64_t unit, std::function<void()> phase3) {
  Window* const window = Find(self->state, unit);
  if (window == nullptr) return;
  if (window->state == Place::kHere) return phase3();
  window->when_restored = std::move(phase3);
}

}  // namespace troupe
