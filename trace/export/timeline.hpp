// A stretch of a trace as importers of timelines need it: lanes on which nothing overlaps, and one
// arrow for every message that was handled, which never ends before it starts. Both exporters and
// the page draw this.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/steps.hpp"

namespace troupe {

enum class LaneKind : std::uint8_t { kWork, kHandlers };

/// What the lanes of a rank's work are called: what it computes, what is copied beside, and
/// gradients that are summed beside, where they are.
inline constexpr std::array kWorkLanes = {"work", "copies", "sums"};

/// A line of the timeline: what one actor handled, or the work of one device.
struct TimelineLane {
  std::vector<std::string> path;  ///< "n0", "language", "s1", "rank 3": from the outside inwards
  LaneKind kind = LaneKind::kHandlers;
  int actor = -1;  ///< -1: outside of all actors, where the first messages come from
  int process = 0;
  int rank = -1;            ///< of work: the device; else -1
  std::vector<int> stages;  ///< of work: what the rank runs, ascending
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
  std::string unit;                  ///< "microbatches", "credits", "bytes"
  std::vector<CounterPoint> points;  ///< at every change, by time, and one at the end
  std::string axis = {};  ///< counters of one axis are drawn to one scale; empty: to its own
};

struct Timeline {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<TimelineLane> lanes;  ///< sorted by path
  std::vector<LaneSlice> slices;    ///< by lane, then begin
  std::vector<Arrow> arrows;        ///< by message
  std::vector<LaneCounter> counters;
  std::vector<StepSpan> steps;

  // Every message of the stretch is one of these; those with an arrow are `arrows`.
  std::int64_t unhandled = 0;  ///< no arrow: nobody has handled it
  std::int64_t nameless = 0;   ///< no arrow: handled by an actor whose name is not in the trace
  std::int64_t messages() const {
    return static_cast<std::int64_t>(arrows.size()) + unhandled + nameless;
  }
  std::int64_t of_steps = 0;  ///< of all these messages, those of the rounds of `steps`
};

enum class Stretch : std::uint8_t {
  kSteps,  ///< from the beginning of the first to the end of the last
  kWhole,  ///< all of the trace, with the steps marked in it
};

/// All messages that were under way, in a mailbox or in a handler at some time of the stretch, and
/// all work that ran in it; and whatever else is of its steps: the next round is announced, and its
/// inputs are read, while one runs. Without `spans` it is the whole trace.
Timeline MakeTimeline(const TraceIndex& index, const std::vector<StepSpan>& spans,
                      Stretch stretch = Stretch::kSteps);

/// "n0"; of a process that has no name, its number.
std::string ProcessName(const RunTrace& trace, int process);

/// "F 3" of work, "checkpoint 40" of step 40, "Activation" of a message: what is written on a slice.
std::string SliceName(const TraceIndex& index, const LaneSlice& slice);

}  // namespace troupe
