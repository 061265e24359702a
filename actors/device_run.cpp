#include "actors/device_run.hpp"

#include <algorithm>
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

static FailureKind KindOfThrown() {
  try {
    throw;
  } catch (const FailureError& e) {
    return e.kind;
  } catch (...) {
    return FailureKind::kError;
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
    s.config.abort->Raise({cause, KindOfThrown()});
    return MakeFailure(cause);
  }
}

void NoteHead(DevicePointer self, Lane lane) {
  DeviceState& s = self->state;
  s.on(lane).head_since_ns = s.on(lane).queued.empty() ? 0 : NowNs();
  std::int64_t since_ns = 0;
  for (const DeviceState::OnLane& it : s.lanes) {
    if (it.head_since_ns != 0 && (since_ns == 0 || it.head_since_ns < since_ns)) {
      since_ns = it.head_since_ns;
    }
  }
  self->activity()->queue_since_ns.store(since_ns, std::memory_order_relaxed);
}

std::int64_t BusyFor(DeviceState& s, Lane lane, const WorkTimes& times) {
  const std::int64_t busy_ns = s.lane_times.Count(lane, times.begin_ns, times.end_ns);
  for (const Lane each : {Lane::kCompute, Lane::kCollectives}) {
    if (s.on(each).queued.empty()) s.lane_times.Emptied(each);
  }
  return busy_ns;
}

/// Whether there is room for the first of those that wait.
static bool HasRoom(const DeviceState& s) {
  if (const auto lane = s.waiting.front().lane) {
    return s.lanes[static_cast<std::size_t>(*lane)].queued.size() < DeviceState::kQueuedCommands;
  }
  return std::all_of(s.lanes.begin(), s.lanes.end(),
                     [](const DeviceState::OnLane& it) { return it.queued.empty(); });
}

void Pump(DevicePointer self) {
  DeviceState& s = self->state;
  while (!s.waiting.empty() && HasRoom(s)) {
    const auto start = std::move(s.waiting.front().start);
    s.waiting.pop_front();
    start();
  }
}

}  // namespace troupe
