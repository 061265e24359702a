// The work of an encoder whose state is copied off its devices and back, as a trace.
#pragma once

#include <algorithm>

#include "trace/run_trace.hpp"

namespace troupe {

inline void Add(RunTrace& trace, int stage, int rank, WorkKind kind, std::int64_t unit,
                std::int64_t begin, std::int64_t end) {
  TraceWork work;
  work.pass.kind = kind;
  work.pass.stage = stage;
  work.pass.rank = rank;
  work.pass.unit = unit;
  work.pass.begin_ns = begin;
  work.pass.end_ns = end;
  trace.work.push_back(work);
}

/// Two windows of an encoder on two ranks, one of whose copies ends late each time.
inline RunTrace TwoWindows() {
  RunTrace trace;
  trace.stages = {{"vision", 0}, {"language", 0}};
  trace.actors = {MakeTraceActor(DeviceActor(0)), MakeTraceActor(DeviceActor(1))};
  for (std::int64_t window = 0; window < 2; ++window) {
    const std::int64_t at = window * 1000;
    for (const int rank : {0, 1}) {
      Add(trace, 0, rank, WorkKind::kForward, window, at, at + 100);
      Add(trace, 0, rank, WorkKind::kExchange, window, at + 100, at + 110);
      Add(trace, 0, rank, WorkKind::kOffload, window, at + 112 + rank, at + 150 + 10 * rank);
      Add(trace, 1, rank, WorkKind::kForward, window, at + 120, at + 300);
      Add(trace, 1, rank, WorkKind::kBackward, window, at + 300, at + 600);
      // Back 25 after the rows in the first window, before them in the second.
      const std::int64_t late = window == 0 ? 25 : -30;
      Add(trace, 0, rank, WorkKind::kRestore, window, at + 500, at + 620 + late * rank);
      Add(trace, 0, rank, WorkKind::kExchange, window, at + 600, at + 620);
      Add(trace, 0, rank, WorkKind::kBackward, window, at + 650, at + 850);
    }
  }
  std::ranges::stable_sort(trace.work, {}, [](const TraceWork& w) { return w.pass.begin_ns; });
  return trace;
}

}  // namespace troupe
