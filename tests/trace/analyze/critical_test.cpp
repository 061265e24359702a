#include "trace/analyze/critical.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/diff.hpp"

namespace troupe {
namespace {

/// Nanoseconds by bucket.
std::map<std::string, std::int64_t> BucketsOf(const TraceIndex& index, const CriticalPath& path) {
  std::map<std::string, std::int64_t> buckets;
  for (const Segment& segment : path.segments) {
    buckets[BucketOf(index, segment)] += segment.length_ns();
  }
  return buckets;
}

TEST_CASE("the critical path covers its step from end to end", "[trace]") {
  generated::Spec spec;
  spec.processes = 2;
  spec.dp = 2;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  for (const StepSpan& span : steps.all()) {
    const CriticalPath path = CriticalPathOf(index, span);
    REQUIRE_FALSE(path.segments.empty());
    std::int64_t at_ns = span.begin_ns;
    for (const Segment& segment : path.segments) {
      CHECK(segment.begin_ns == at_ns);
      CHECK(segment.kind != SegmentKind::kUnknown);
      at_ns = segment.end_ns;
    }
    CHECK(at_ns == span.end_ns);
    std::int64_t total_ns = 0;
    for (const auto& [bucket, ns] : BucketsOf(index, path)) total_ns += ns;
    CHECK(total_ns == span.end_ns - span.begin_ns);
  }
}

TEST_CASE("on a chain with one microbatch the path is every pass there and back", "[trace]") {
  generated::Spec spec;
  spec.microbatches = 1;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const auto buckets = BucketsOf(index, CriticalPathOf(index, steps.Of(2)));
  CHECK(buckets.at("compute F of vision.s0") == 80'000);
  CHECK(buckets.at("compute B of language.s1") == 200'000);
  CHECK(buckets.at("compute update of vision.s0") == 10'000);
  // Two leaders there and two back: each 1000 ns of handling and 500 ns to it and from it.
  CHECK(buckets.at("boundary vision>language") == 4 * 1000 + 6 * 500);
}

TEST_CASE("a checkpoint has a share and a line of its own on the path of its step", "[trace]") {
  generated::Spec spec;
  spec.steps = 4;
  spec.checkpoint_every = 2;
  spec.checkpoint_us = 30'000;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const CriticalPath path = CriticalPathOf(index, steps.Of(3));
  std::int64_t total_ns = 0;
  for (const auto& [bucket, ns] : BucketsOf(index, path)) total_ns += ns;
  CHECK(total_ns == path.span.end_ns - path.span.begin_ns);
  // The shard, and then a microsecond each in the lock step and the director, at least.
  const std::int64_t checkpoint_ns = BucketsOf(index, path).at("checkpoint");
  CHECK(checkpoint_ns >= 30'002'000);
  CHECK(checkpoint_ns < 30'010'000);
  const std::string text = Format(path, index, 100'000);
  CHECK_THAT(text, Catch::Contains(", checkpoint 30.0") &&
                       Catch::Contains("  checkpoint  device ") &&
                       Catch::Contains("  writing the checkpoint of step 2 (") &&
                       Catch::Contains("), usual none\n"));
  CHECK_THAT(Format(CriticalPathOf(index, steps.Of(4)), index, 100'000),
             !Catch::Contains("checkpoint"));
}

TEST_CASE("work whose message is lost is named on the path", "[trace]") {
  RunTrace trace = generated::Generate({});
  // As in a ring that has wrapped: the messages that started the work are overwritten.
  for (TraceWork& work : trace.work) work.message = -1;
  const TraceIndex index(trace);
  const Steps steps(index);
  const CriticalPath path = CriticalPathOf(index, steps.Of(2));
  REQUIRE(path.segments.size() == 2);
  CHECK(path.segments.back().message == -1);
  CHECK_THAT(Format(path, index, 0), Catch::Contains("update of vision.s0") &&
                                         Catch::Contains("earlier events are not in the trace"));
}

TEST_CASE("a path says how often it went from one process to another", "[trace]") {
  generated::Spec spec;
  spec.processes = 2;
  RunTrace trace = generated::Generate(spec);
  const auto ways = [&] {
    const TraceIndex index(trace);
    const Steps steps(index);
    return TripsOf(CriticalPathOf(index, steps.Of(2)), index);
  };
  const int before = ways();
  CHECK(before > 0);
  const TraceIndex index(trace);
  const Steps steps(index);
  const CriticalPath path = CriticalPathOf(index, steps.Of(2));
  int far = 0;
  for (const Segment& segment : path.segments) {
    far += segment.kind == SegmentKind::kTransit && segment.length_ns() == spec.far_ns ? 1 : 0;
  }
  CHECK(before == far);
  CHECK_THAT(Format(path, index, 0),
             Catch::Contains("; " + std::to_string(far) + " trips between processes"));
  // Bytes that are asked for go there and back.
  trace.messages.at(static_cast<std::size_t>(path.segments.back().message)).asked = true;
  CHECK(ways() == before + 2);

  const RunTrace alone = generated::Generate({});
  const TraceIndex of_alone(alone);
  const Steps steps_alone(of_alone);
  CHECK_THAT(Format(CriticalPathOf(of_alone, steps_alone.Of(2)), of_alone, 0),
             !Catch::Contains("between processes"));
}

TEST_CASE("a path whose beginning is lost says so", "[trace]") {
  RunTrace trace = generated::Generate({});
  const TraceIndex whole(trace);
  const Steps steps(whole);
  for (TraceMessage& m : trace.messages) {
    if (m.sent_ns > steps.Of(2).begin_ns && m.round == 1) {
      m.cause = -1;  // what came before it was overwritten
    }
  }
  const TraceIndex index(trace);
  const CriticalPath path = CriticalPathOf(index, steps.Of(2));
  CHECK(path.segments.front().kind == SegmentKind::kUnknown);
  CHECK_THAT(Format(path, index, 0), Catch::Contains("unknown"));
}

TEST_CASE("a slower stage is where the extra milliseconds went", "[trace]") {
  generated::Spec spec;
  const RunTrace before = generated::Generate(spec);
  spec.modules[1].backward_us += 50;
  const RunTrace after = generated::Generate(spec);
  const TraceIndex a(before);
  const TraceIndex b(after);
  const Diff diff = Compare(a, Steps(a), b, Steps(b));
  CHECK(diff.work.front().what.rfind("B of language.s", 0) == 0);
  CHECK(diff.work.front().delta_ns() == 50'000);
  std::int64_t sum_ns = 0;
  for (const Change& change : diff.path) sum_ns += change.delta_ns();
  CHECK(sum_ns == diff.step.delta_ns());
  CHECK(diff.step.delta_ns() > 100'000);
  CHECK(diff.path.front().what.rfind("compute B of language.s", 0) == 0);
  const RunTrace none;
  const TraceIndex empty(none);
  CHECK_THROWS_WITH(Compare(a, Steps(a), empty, Steps(empty)),
                    Catch::Contains("the trace has no training step"));
}

}  // namespace
}  // namespace troupe
