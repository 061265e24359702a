#include "actors/tracer_actor.hpp"

#include <algorithm>
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

/// Records per message: far below the 1 MiB that the network of actors takes without delay.
constexpr std::size_t kBatch = 4096;

void Hand(Self self, std::vector<PassRecord> records, std::uint64_t dropped) {
  TracerState& s = self->state;
  const std::int64_t offset = s.config.clock_offset_ns ? s.config.clock_offset_ns() : 0;
  for (PassRecord& record : records) {
    record.begin_ns += offset;
    record.end_ns += offset;
  }
  for (std::size_t begin = 0; begin < records.size() || dropped > 0; begin += kBatch) {
    const auto first =
        records.begin() + static_cast<std::ptrdiff_t>(std::min(begin, records.size()));
    const auto count = std::min(kBatch, static_cast<std::size_t>(records.end() - first));
    TraceRecords batch{{first, first + static_cast<std::ptrdiff_t>(count)},
                       std::exchange(dropped, 0)};
    self->send(s.config.collector, std::move(batch));
  }
}

void Drain(Self self) {
  TracerState& s = self->state;
  for (std::size_t i = 0; i < s.config.rings.size(); ++i) {
    const RingSnapshot snapshot = s.config.rings[i]->Snapshot(s.drained[i]);
    const std::uint64_t before = s.drained[i];
    s.result.dropped += snapshot.first - before;
    s.drained[i] = snapshot.first + snapshot.records.size();
    s.result.records += static_cast<std::int64_t>(snapshot.records.size());
    if (s.config.collector) {
      Hand(self, snapshot.records, snapshot.first - before);
    } else {
      Guarded(s, [&] { s.writer->Append(snapshot.records); });
    }
  }
}

}  // namespace

Tracer::behavior_type RunTracer(Self self, TracerConfig config) {
  TracerState& s = self->state;
  s.config = std::move(config);
  s.drained.resize(s.config.rings.size());
  if (!s.config.collector) {
    Guarded(s,
            [&] { s.writer = std::make_unique<TraceWriter>(s.config.path, s.config.stage_names); });
  }
  self->delayed_send(self, s.config.interval, DrainRings{});
  return {
      [self, &s](const DrainRings&) {
        Drain(self);
        self->delayed_send(self, s.config.interval, DrainRings{});
      },
      [&s](const TraceRecords& batch) {
        s.result.dropped += batch.dropped;
        s.result.records += static_cast<std::int64_t>(batch.records.size());
        Guarded(s, [&] { s.writer->Append(batch.records); });
      },
      [self, &s](const CloseTrace&) {
        Drain(self);
        if (s.writer) Guarded(s, [&] { s.writer->Close(); });
        return s.result;
      },
  };
}

}  // namespace troupe
