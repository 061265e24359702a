#include "trace/export/counters.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {
namespace {

struct InFlight {
  int lane = 0;
  bool goes_back = false;
  std::vector<CounterPoint> changes;
};

/// Repeats the last value at the end of the timeline.
void EndAt(std::int64_t end_ns, std::vector<CounterPoint>& points) {
  const CounterPoint last = points.back();
  points.push_back({std::max(end_ns, last.at_ns), last.value});
}

LaneCounter CounterOf(const TimelineLane& lane, int dp, InFlight in_flight, std::int64_t end_ns) {
  std::ranges::stable_sort(in_flight.changes, {}, &CounterPoint::at_ns);
  LaneCounter counter{lane.path, "microbatches", {}};
  // Next to the ranks: the lane is "rank 3", "work".
  if (counter.path.size() > 2) counter.path.resize(counter.path.size() - 2);
  counter.path.push_back("in flight dp" + std::to_string(dp));
  std::int64_t value = 0;
  std::int64_t least = 0;
  for (const CounterPoint& change : in_flight.changes) {
    value += change.value;
    least = std::min(least, value);
    counter.points.push_back({change.at_ns, value});
  }
  // Forwards that began before the stretch are in flight in it.
  for (CounterPoint& point : counter.points) point.value -= least;
  EndAt(end_ns, counter.points);
  return counter;
}

/// The points at which the value changes, and one at the end.
LaneCounter MemoryCounter(std::vector<std::string> path, std::vector<CounterPoint> points,
                          std::int64_t end_ns) {
  std::ranges::stable_sort(points, {}, &CounterPoint::at_ns);
  const std::int64_t last_ns = points.back().at_ns;
  const auto same_value = [](const CounterPoint& a, const CounterPoint& b) {
    return a.value == b.value;
  };
  points.erase(std::unique(points.begin(), points.end(), same_value), points.end());
  EndAt(std::max(end_ns, last_ns), points);
  return {std::move(path), "bytes", std::move(points)};
}

std::vector<LaneCounter> MemoryOfProcesses(const TraceIndex& index, const Timeline& timeline) {
  std::map<int, std::vector<CounterPoint>> processes;
  for (const LaneSlice& slice : timeline.slices) {
    if (slice.work < 0) continue;
    const TraceWork& work = index.work(slice.work);
    if (!work.memory.known() || work.memory.on_gpu()) continue;
    processes[index.ProcessOf(work)].push_back({work.pass.end_ns, work.memory.in_use_bytes});
  }
  std::vector<LaneCounter> counters;
  for (auto& [process, points] : processes) {
    counters.push_back(MemoryCounter({ProcessName(index.trace(), process), "memory"},
                                     std::move(points), timeline.end_ns));
  }
  return counters;
}

/// By rank, although ranks that share a GPU hold the same values: each samples at the end of its
/// own work.
std::vector<LaneCounter> MemoryOfGpus(const TraceIndex& index, const Timeline& timeline) {
  struct Rank {
    int lane = 0;
    std::vector<CounterPoint> in_use;
    std::vector<CounterPoint> reserved;
    std::vector<CounterPoint> peak;
  };
  std::map<int, Rank> ranks;
  for (const LaneSlice& slice : timeline.slices) {
    if (slice.work < 0) continue;
    const TraceWork& work = index.work(slice.work);
    const WorkMemory& memory = work.memory;
    if (!memory.known() || !memory.on_gpu()) continue;
    Rank& rank = ranks.try_emplace(work.pass.rank, Rank{slice.lane, {}, {}, {}}).first->second;
    rank.in_use.push_back({work.pass.end_ns, memory.in_use_bytes});
    if (memory.reserved_bytes > 0)
      rank.reserved.push_back({work.pass.end_ns, memory.reserved_bytes});
    if (memory.peak_bytes > 0) rank.peak.push_back({work.pass.end_ns, memory.peak_bytes});
  }
  std::vector<LaneCounter> counters;
  for (auto& [number, rank] : ranks) {
    const TimelineLane& lane = timeline.lanes[static_cast<std::size_t>(rank.lane)];
    const auto add = [&, number = number](const char* name, std::vector<CounterPoint>& points) {
      if (points.empty()) return;
      std::vector<std::string> path = lane.path;  // "rank 3", "work"
      path.back() = name;
      counters.push_back(MemoryCounter(std::move(path), std::move(points), timeline.end_ns));
      counters.back().axis = "memory of rank " + std::to_string(number);
    };
    add("memory in use", rank.in_use);
    add("memory reserved", rank.reserved);
    add("memory peak", rank.peak);
  }
  return counters;
}

}  // namespace

std::vector<LaneCounter> CountersOf(const TraceIndex& index, const Timeline& timeline) {
  std::map<std::pair<int, int>, InFlight> stages;
  for (const LaneSlice& slice : timeline.slices) {
    if (slice.work < 0) continue;
    const PassRecord& pass = index.work(slice.work).pass;
    if (pass.kind != WorkKind::kForward && pass.kind != WorkKind::kBackward) continue;
    InFlight& stage =
        stages.try_emplace({pass.stage, pass.dp}, InFlight{slice.lane, false, {}}).first->second;
    if (stage.lane != slice.lane) continue;
    const bool forward = pass.kind == WorkKind::kForward;
    stage.goes_back = stage.goes_back || !forward;
    stage.changes.push_back({forward ? slice.begin_ns : slice.end_ns, forward ? 1 : -1});
  }
  std::vector<LaneCounter> counters;
  for (auto& [key, stage] : stages) {
    if (!stage.goes_back) continue;
    const TimelineLane& lane = timeline.lanes[static_cast<std::size_t>(stage.lane)];
    counters.push_back(CounterOf(lane, key.second, std::move(stage), timeline.end_ns));
  }
  std::map<int, LaneCounter> credits;  // by lane of the sender
  for (const Arrow& arrow : timeline.arrows) {
    const TraceMessage& m = index.message(arrow.message);
    if (m.credits < 0 || m.sender < 0) continue;
    LaneCounter& counter = credits[arrow.from_lane];
    if (counter.path.empty()) {
      const TimelineLane& lane = timeline.lanes[static_cast<std::size_t>(arrow.from_lane)];
      counter = {lane.path, "credits", {}};
      counter.path.back() = "credits " + counter.path.back();
    }
    counter.points.push_back({arrow.sent_ns, m.credits});
  }
  for (auto& [lane, counter] : credits) {
    EndAt(timeline.end_ns, counter.points);
    counters.push_back(std::move(counter));
  }
  for (auto memory_of : {MemoryOfProcesses, MemoryOfGpus}) {
    for (LaneCounter& counter : memory_of(index, timeline)) counters.push_back(std::move(counter));
  }
  return counters;
}

}  // namespace troupe
