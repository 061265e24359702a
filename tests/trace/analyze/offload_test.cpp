// State that was copied off devices and back while they computed.
#include "trace/analyze/offload.hpp"

#include <vector>

#include <catch2/catch.hpp>

#include "tests/trace/generated/offloaded.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {

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
  CHECK(
      Format(times[0], 2000) ==
      "state of vision offloaded in 2 windows: in all away for 34.0% of the time; of a window, "
      "median: out in 0.05 us, back in 0.13 us; in all its backward waited 0.03 us for it (exposed "
      "1.2%)\n");
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

}  // namespace troupe
