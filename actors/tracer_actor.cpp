#include "actors/tracer_actor.hpp"

#include <exception>
#include <utility>

namespace troupe {
namespace {

using Self = ActorPointer<Tracer, TracerState>;

template <class Write>
void Guarded(TracerState& s, Write write) {
  if (!s.result.error.empty()) return;
  try {
    write();
  } catch (const std::exception& e) {
    s.result.error = e.what();
  }
}

void Drain(TracerState& s) {
  for (std::size_t i = 0; i < s.config.rings.size(); ++i) {
    const RingSnapshot snapshot = s.config.rings[i]->Snapshot(s.drained[i]);
    s.result.dropped += snapshot.first - s.drained[i];
    s.drained[i] = snapshot.first + snapshot.records.size();
    s.result.records += static_cast<std::int64_t>(snapshot.records.size());
    Guarded(s, [&] { s.writer->Append(snapshot.records); });
  }
}

}  // namespace

Tracer::behavior_type RunTracer(Self self, TracerConfig config) {
  TracerState& s = self->state;
  s.config = std::move(config);
  s.drained.resize(s.config.rings.size());
  Guarded(s,
          [&] { s.writer = std::make_unique<TraceWriter>(s.config.path, s.config.stage_names); });
  self->delayed_send(self, s.config.interval, DrainRings{});
  return {
      [self, &s](const DrainRings&) {
        Drain(s);
        self->delayed_send(self, s.config.interval, DrainRings{});
      },
      [self, &s](const CloseTrace&) {
        Drain(s);
        Guarded(s, [&] { s.writer->Close(); });
        return s.result;
      },
  };
}

}  // namespace troupe
