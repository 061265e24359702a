// Copies of state in timelines, concurrent with the passes of their rank.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/export/lint/lint.hpp"
#include "tests/trace/generated/offloaded.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {

TEST_CASE("copies have a separate lane next to the passes of their rank", "[trace]") {
  const RunTrace trace = TwoWindows();
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  std::map<std::string, std::multiset<std::string>> slices;  // by lane
  for (const LaneSlice& slice : timeline.slices) {
    const auto& path = timeline.lanes[static_cast<std::size_t>(slice.lane)].path;
    slices[path[path.size() - 2] + " " + path.back()].insert(SliceName(index, slice));
    // Nothing is moved to make room: both lanes say when it ran.
    CHECK(slice.begin_ns == index.work(slice.work).pass.begin_ns);
  }
  for (const std::string rank : {"rank 0", "rank 1"}) {
    CHECK(slices[rank + " copies"] ==
          std::multiset<std::string>{"offload", "offload", "restore", "restore"});
    CHECK(slices[rank + " work"].size() == 12);
  }
  std::ostringstream perfetto;
  WritePerfetto(perfetto, index, timeline);
  CHECK(Lint(perfetto.str()).found.empty());
}

TEST_CASE("sums of gradients that run concurrently with other work have a separate lane",
          "[trace]") {
  RunTrace trace = TwoWindows();
  const auto of_rank = [](const TraceWork& work, int rank) {
    return work.pass.rank == rank && work.pass.kind != WorkKind::kReduce && !IsCopy(work.pass.kind);
  };
  const auto names = [&trace] {
    const TraceIndex index(trace);
    std::multiset<std::string> found;
    for (const TimelineLane& lane : MakeTimeline(index, {}).lanes) {
      if (lane.kind == LaneKind::kWork) {
        found.insert(lane.path[lane.path.size() - 2] + " " + lane.path.back());
      }
    }
    return found;
  };
  // One sum on each rank: rank 0's after all that it computes, rank 1's during it.
  TraceWork behind = *std::ranges::find_if(trace.work, [&](auto& w) { return of_rank(w, 0); });
  TraceWork beside = *std::ranges::find_if(trace.work, [&](auto& w) { return of_rank(w, 1); });
  for (const TraceWork& work : trace.work) {
    if (of_rank(work, 0)) behind.pass.end_ns = std::max(behind.pass.end_ns, work.pass.end_ns);
  }
  behind.pass.kind = beside.pass.kind = WorkKind::kReduce;
  behind.pass.begin_ns = behind.pass.end_ns++;
  beside.pass.begin_ns += 1;
  trace.work.insert(trace.work.end(), {behind, beside});
  CHECK(names() == std::multiset<std::string>{"rank 0 copies", "rank 0 work", "rank 1 copies",
                                              "rank 1 sums", "rank 1 work"});
}

}  // namespace troupe
