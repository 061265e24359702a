#include "trace/analyze/collectives.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/offloaded.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

void Add(RunTrace& trace, WorkKind kind, std::int64_t begin_ns, std::int64_t end_ns) {
  TraceWork work;
  work.pass = {.begin_ns = begin_ns, .end_ns = end_ns, .kind = kind};
  trace.concurrent.push_back(work);
}

/// A trace whose first stage has work and collectives.
RunTrace WithCollectives() {
  RunTrace trace = TwoWindows();
  Add(trace, WorkKind::kReduceBucket, 100, 300);
  Add(trace, WorkKind::kReduceBucket, 300, 400);
  Add(trace, WorkKind::kCollectiveWait, 350, 400);
  Add(trace, WorkKind::kGather, 900, 1100);
  Add(trace, WorkKind::kCollectiveWait, 1050, 1100);
  return trace;
}

}  // namespace

TEST_CASE("what collectives took, and how much of it was waited for", "[trace]") {
  const RunTrace trace = WithCollectives();
  const TraceIndex index(trace);
  const auto times = CollectiveTimesOf(index, 0, 2000);
  REQUIRE(times.size() == 1);
  CHECK(times[0].module == index.ModuleOf(0));
  CHECK(times[0].reduces == 2);
  CHECK(times[0].reduce_ns == 300);
  CHECK(times[0].gathers == 1);
  CHECK(times[0].gather_ns == 200);
  CHECK(times[0].exposed_ns == 100);
  CHECK(Format(times[0]) ==
        "replicas of " + times[0].module +
            ": 2 sums of gradients in 0.30 us, 1 gathering of parameters in 0.20 us; other work "
            "waited 0.10 us for them (exposed 20.0%)\n");
}

TEST_CASE("collectives count for the time within the steps", "[trace]") {
  const RunTrace trace = WithCollectives();
  const auto times = CollectiveTimesOf(TraceIndex(trace), 350, 1000);
  REQUIRE(times.size() == 1);
  CHECK(times[0].reduces == 1);
  CHECK(times[0].reduce_ns == 50);
  CHECK(times[0].gather_ns == 100);
  CHECK(times[0].exposed_ns == 50);
  CHECK(CollectiveTimesOf(TraceIndex(trace), 500, 600).empty());
}

TEST_CASE("what copies of activations took, and how long passes waited for them", "[trace]") {
  RunTrace trace = TwoWindows();
  Add(trace, WorkKind::kActivationsOut, 100, 300);
  Add(trace, WorkKind::kActivationsOut, 300, 400);
  Add(trace, WorkKind::kActivationsBack, 500, 600);
  Add(trace, WorkKind::kActivationsWait, 580, 600);
  const TraceIndex index(trace);
  CHECK(CollectiveTimesOf(index, 0, 2000).empty());
  const auto times = ActivationTimesOf(index, 0, 2000);
  REQUIRE(times.size() == 1);
  CHECK(Format(times[0]) ==
        "activations of " + index.ModuleOf(0) +
            ": 2 layers out in 0.30 us, 1 back in 0.10 us; passes waited 0.02 us "
            "for them (exposed 5.0%)\n");
  CHECK(ActivationTimesOf(TraceIndex(WithCollectives()), 0, 2000).empty());
}

TEST_CASE("collectives do not count as work of a rank", "[trace]") {
  const RunTrace with = WithCollectives();
  const Summary one = Summarize(TraceIndex(with), {StepSpan{1, 0, 0, 2000}});
  const RunTrace without = TwoWindows();
  const Summary other = Summarize(TraceIndex(without), {StepSpan{1, 0, 0, 2000}});
  CHECK(one.collectives.size() == 1);
  CHECK(one.computed_ns == other.computed_ns);
  CHECK(one.bubble() == other.bubble());
}

}  // namespace troupe
