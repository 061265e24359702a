#include "actors/device_run.hpp"

#include <exception>

namespace troupe {

/// Libraries like to append backtraces.
static std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string TextOfThrown() {
  try {
    throw;
  } catch (const std::exception& e) {
    return FirstLine(e.what());
  } catch (...) {
    return "something was thrown that is no exception";
  }
}

caf::error Failed(DevicePointer self, const DeviceWork& work) {
  DeviceState& s = self->state;
  try {
    throw;
  } catch (const Aborted& aborted) {
    return MakeFailure(aborted.what());
  } catch (...) {
    const std::string cause = Describe(s.config, work) + ": " + TextOfThrown();
    s.config.abort->Raise(cause);
    return MakeFailure(cause);
  }
}

void NoteHead(DevicePointer self) {
  self->activity()->queue_since_ns.store(self->state.queued.empty() ? 0 : NowNs(),
                                         std::memory_order_relaxed);
}

void Pump(DevicePointer self) {
  DeviceState& s = self->state;
  while (!s.waiting.empty()) {
    const bool room =
        s.waiting.front().alone ? s.queued.empty() : s.queued.size() < DeviceState::kQueuedCommands;
    if (!room) return;
    const auto start = std::move(s.waiting.front().start);
    s.waiting.pop_front();
    start();
  }
}

}  // namespace troupe
