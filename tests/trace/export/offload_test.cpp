// Copies of state in timelines: beside what their rank computes.
#include <map>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/generated/offloaded.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/lint.hpp"

namespace troupe {

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
