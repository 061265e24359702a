// Moves what the devices recorded into the run's trace file.
//   receives  DrainRings  (from itself, every `interval`)
//             TraceRecords  from the Tracers of other processes: into the same file
//             CloseTrace  answers TraceClosed
//
// One process writes the file; the Tracers of the others send it what they drain, on its clock.
//
// A file that cannot be written does not stop training: the first error is kept and told at the
// end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/trace.hpp"
#include "trace/ring.hpp"
#include "trace/trace_file.hpp"

namespace troupe {

struct TracerConfig {
  std::string path;  ///< of the trace file, where there is no collector
  Tracer collector;  ///< who writes the file, when that is another process
  /// Add to this process's clock to get the collector's, in ns; asked at every drain. May be empty.
  std::function<std::int64_t()> clock_offset_ns;
  std::vector<std::string> stage_names;
  std::vector<std::shared_ptr<Ring>> rings;
  std::chrono::milliseconds interval{200};
};

struct TracerState {
  static constexpr const char* name = "tracer";

  TracerConfig config;
  std::unique_ptr<TraceWriter> writer;
  std::vector<std::uint64_t> drained;  ///< by ring: records seen so far
  TraceClosed result;
};

Tracer::behavior_type RunTracer(ActorPointer<Tracer, TracerState> self, TracerConfig config);

}  // namespace troupe
