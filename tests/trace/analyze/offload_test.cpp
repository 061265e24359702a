// State that was copied off devices and back, beside what they computed.
#include "trace/analyze/offload.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/lint.hpp"

namespace troupe {
namespace {

void Add(RunTrace& trace, int stage, int rank, WorkKind kind, std::int64_t unit, std::int64_t begin,
         std::int64_t end) {
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
RunTrace TwoWindows() {
  RunTrace trace;
  trace.stages = {"vision.s0", "language.s0"};
  trace.actors = {{"device 0", 0}, {"device 1", 0}};
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
  return trace;
}

}  // namespace

TEST_CASE("the time that a backward waited for its state alone is exposed", "[trace]") {
  const RunTrace trace = TwoWindows();
  const TraceIndex index(trace);
  const auto times = OffloadTimesOf(index, 0, 2000);
  REQUIRE(times.size() == 1);
  CHECK(times[0].module == "vision");
  CHECK(times[0].windows == 2);
  CHECK(times[0].out_ns == 48);
  CHECK(times[0].away_ns == 2 * (500 - 160));
  CHECK(times[0].exposed_ns == 25);
  CHECK(Format(times[0], 2000) ==
        "state of vision offloaded in 2 windows: away for 34.0% of the time; out in 48 ns, back in "
        "120 ns; its backward waited 25 ns for it in all (exposed 1.2%)\n");
  CHECK(OffloadTimesOf(index, 1000, 2000).at(0).exposed_ns == 0);  // the second window alone
  CHECK(OffloadTimesOf(index, 0, 700).at(0).windows == 1);
}

TEST_CASE("an encoder that gets no rows back has nothing exposed", "[trace]") {
  RunTrace trace = TwoWindows();
  std::erase_if(trace.work, [](const TraceWork& work) {
    return work.pass.kind == WorkKind::kExchange && work.pass.begin_ns % 1000 == 600;
  });
  CHECK(OffloadTimesOf(TraceIndex(trace), 0, 2000).at(0).exposed_ns == 0);
  std::erase_if(trace.work, [](const TraceWork& work) { return IsCopy(work.pass.kind); });
  CHECK(OffloadTimesOf(TraceIndex(trace), 0, 2000).empty());
}

TEST_CASE("copies are no part of a rank's busy time", "[trace]") {
  const RunTrace with = TwoWindows();
  RunTrace without = with;
  std::erase_if(without.work, [](const TraceWork& work) { return IsCopy(work.pass.kind); });
  const auto summary = [](const RunTrace& trace) {
    return Summarize(TraceIndex(trace), {StepSpan{1, 0, 0, 2000}});
  };
  const Summary one = summary(with);
  const Summary other = summary(without);
  CHECK(one.offloads.size() == 1);
  REQUIRE(one.stages.size() == other.stages.size());
  for (std::size_t i = 0; i < one.stages.size(); ++i) {
    CHECK(one.stages[i].own_ns == other.stages[i].own_ns);
    CHECK(one.stages[i].other_ns == other.stages[i].other_ns);
    CHECK(one.stages[i].idle_ns == other.stages[i].idle_ns);
  }
}

TEST_CASE("copies have a lane of their own beside the passes of their rank", "[trace]") {
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
  std::ostringstream chrome;
  WriteChrome(chrome, index, timeline);
  std::ostringstream perfetto;
  WritePerfetto(perfetto, index, timeline);
  for (const std::string& content : {chrome.str(), perfetto.str()})
    CHECK(Lint(content).found.empty());
}

}  // namespace troupe
