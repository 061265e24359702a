// A stretch of a trace as importers of timelines need it: lanes on which nothing overlaps, and one
// arrow for every message that was handled, which never ends before it starts. Both exporters and
// the page draw this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/steps.hpp"

namespace troupe {

enum class LaneKind : std::uint8_t { kWork, kHandlers };

/// A line of the timeline: what one actor handled, or the work of one device.
struct Lane {
  std::vector<std::string> path;  ///< "n0", "language", "s1", "rank 3": from the outside inwards
  LaneKind kind = LaneKind::kHandlers;
  int actor = -1;  ///< -1: outside of all actors, where the first messages come from
  int process = 0;
};

/// One handled message or one piece of work.
struct LaneSlice {
  int lane = 0;
  int message = -1;
  int work = -1;              ///< >= 0: it is on a lane of work
  std::int64_t begin_ns = 0;  ///< never before the slice before it on the lane has ended
  std::int64_t end_ns = 0;
};

/// A message from where it was sent to the beginning of its handler.
struct Arrow {
  int message = -1;
  int from_lane = 0;
  int slice = -1;             ///< index of the handler's
  std::int64_t sent_ns = 0;   ///< on one lane they are all different
  std::int64_t begin_ns = 0;  ///< at least 1 ns later
};

struct CounterPoint {
  std::int64_t at_ns = 0;
  std::int64_t value = 0;
};

struct LaneCounter {
  std::vector<std::string> path;  ///< where it belongs, then its name
  int process = 0;
  std::string unit;                  ///< "microbatches"
  std::vector<CounterPoint> points;  ///< at every change, by time, and one at the end
};

struct Timeline {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<Lane> lanes;        ///< sorted by path
  std::vector<LaneSlice> slices;  ///< by lane, then begin
  std::vector<Arrow> arrows;      ///< by message
  std::vector<LaneCounter> counters;
  std::vector<StepSpan> steps;
  std::int64_t unhandled = 0;  ///< messages sent in it that have no arrow, for nobody handled them
};

/// Everything that was sent or worked on from the beginning of the first of `spans` to the end of
/// the last; of the whole trace without one.
Timeline MakeTimeline(const TraceIndex& index, const std::vector<StepSpan>& spans);

/// "F 3" of work, "Activation" of a message: what is written on a slice.
std::string SliceName(const TraceIndex& index, const LaneSlice& slice);

}  // namespace troupe
