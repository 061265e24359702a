// A stretch of a trace for timeline viewers: lanes without overlaps, and one arrow for every
// handled message, which never ends before it starts. The Perfetto export and the page draw it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/steps.hpp"

namespace troupe {

enum class LaneKind : std::uint8_t { kWork, kHandlers };

/// Names of the lanes of a rank's work: computation, and, if they run concurrently with it, copies
/// and sums of gradients.
inline constexpr std::array kWorkLanes = {"work", "copies", "sums"};

/// A line of the timeline: the handlers of one actor, or the work of one device.
struct TimelineLane {
  std::vector<std::string> path;  ///< "n0", "language", "s1", "rank 3": from the outside inwards
  LaneKind kind = LaneKind::kHandlers;
  int actor = -1;  ///< -1: outside of all actors, the source of the first messages
  int process = 0;
  int rank = -1;            ///< work: the device; else -1
  std::vector<int> stages;  ///< work: the stages of the rank, ascending
};

/// One handled message or one piece of work.
struct LaneSlice {
  int lane = 0;
  int message = -1;
  int work = -1;              ///< >= 0 on a lane of work
  std::int64_t begin_ns = 0;  ///< not before the end of the previous slice of the lane
  std::int64_t end_ns = 0;
};

/// A message from its sender to the beginning of its handler.
struct Arrow {
  int message = -1;
  int from_lane = 0;
  int slice = -1;            ///< index of the handler's slice, which begins at least 1 ns later
  std::int64_t sent_ns = 0;  ///< unique on its lane
};

struct CounterPoint {
  std::int64_t at_ns = 0;
  std::int64_t value = 0;
};

struct LaneCounter {
  std::vector<std::string> path;     ///< path of its group, then its name
  std::string unit;                  ///< "microbatches", "credits", "bytes"
  std::vector<CounterPoint> points;  ///< at every change, by time, and one at the end
  std::string axis = {};  ///< counters of one axis share a scale; empty: a separate scale
};

struct Timeline {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<TimelineLane> lanes;  ///< sorted by path
  std::vector<LaneSlice> slices;    ///< by lane, then begin
  std::vector<Arrow> arrows;        ///< by message
  std::vector<LaneCounter> counters;
  std::vector<StepSpan> steps;

  // Every message of the stretch has an entry in `arrows` or counts here.
  std::int64_t unhandled = 0;  ///< never handled
  std::int64_t nameless = 0;   ///< handled by an actor whose name is not in the trace
  std::int64_t messages() const {
    return static_cast<std::int64_t>(arrows.size()) + unhandled + nameless;
  }
  std::int64_t of_steps = 0;  ///< messages of the rounds of `steps`
};

enum class Stretch : std::uint8_t {
  kSteps,  ///< from the beginning of the first to the end of the last
  kWhole,  ///< all of the trace, with the steps marked in it
};

/// Contains all messages in transit, in a mailbox or in a handler during the stretch, all work that
/// ran in it, and everything else of its steps: a round is announced, and its inputs are read,
/// during the previous one. Without `spans` it is the whole trace.
Timeline MakeTimeline(const TraceIndex& index, const std::vector<StepSpan>& spans,
                      Stretch stretch = Stretch::kSteps);

/// "n0"; the number of a process without a name.
std::string ProcessName(const RunTrace& trace, int process);

/// The label of a slice: "F 3", "checkpoint 40" for step 40, "Activation" for a message.
std::string SliceName(const TraceIndex& index, const LaneSlice& slice);

}  // namespace troupe
