#include "trace/analyze/places.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

PassRecord PassOf(int stage, std::int64_t round, std::int64_t unit) {
  PassRecord pass;
  pass.stage = stage;
  pass.round = round;
  pass.unit = unit;
  return pass;
}

TEST_CASE("evaluations do not shift the numbers of microbatches", "[trace]") {
  generated::Spec spec;
  spec.evaluates_first = true;
  spec.first_step = 39;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  CHECK(index.places().Of(PassOf(0, 0, 2)) == UnitPlace{UnitPlace::kEvaluation, 2});
  CHECK(index.places().Of(PassOf(0, 1, 4)) == UnitPlace{39, 0});
  CHECK(index.places().Of(PassOf(2, 2, 9)) == UnitPlace{40, 1});
  CHECK(ToString(index.places().Of(PassOf(2, 2, 9))) == "step 40 mb 1");
  CHECK(ToString(index.places().Of(PassOf(0, 0, 2))) == "evaluation mb 2");
  CHECK(index.places().OfUnit(9, false) == UnitPlace{40, 1});
  CHECK(index.places().OfUnit(9, true) == UnitPlace{});  // nothing works in windows
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    const int work = index.WorkOf(i);
    const bool of_pass = work >= 0 && IsPass(index.work(work).pass.kind);
    if (m.link < 0 && !of_pass) continue;
    const std::int64_t number = m.unit < 0 ? UnitPlace::kUnknown : m.unit % 4;
    INFO(index.TypeName(i));
    CHECK(index.places().OfMessage(index, i).number == number);
  }
}

TEST_CASE("a checkpoint is of a step, and of no microbatch", "[trace]") {
  generated::Spec spec;
  spec.checkpoint_every = 1;
  spec.microbatches = 1;  // so that the step's number is a microbatch's, too
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  int found = 0;
  for (int w = 0; static_cast<std::size_t>(w) < trace.work.size(); ++w) {
    const PassRecord& pass = index.work(w).pass;
    if (pass.kind != WorkKind::kCheckpoint || pass.unit != 2) continue;
    ++found;
    CHECK(index.places().Of(pass) == UnitPlace{});
    CHECK(Describe(index, pass) == "checkpoint of step 2");
    CHECK(DescribeWork(index, w) ==
          "writing the checkpoint of step 2 (" + index.StageName(pass.stage) + ")");
  }
  CHECK(found == 5);
}

TEST_CASE("what nothing has run yet goes on after what ran", "[trace]") {
  generated::Spec spec;
  spec.slow = {{"language.s0", 0, WorkKind::kForward, 9, 0, true}};  // step 3, mb 1: for ever
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  bool seen = false;
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (index.TypeName(i) != "RunForward" || m.unit != 9 || m.end_ns >= 0) continue;
    seen = true;
    CHECK(DescribeHandling(index, i) == "RunForward (step 3 mb 1)");
  }
  CHECK(seen);
}

TEST_CASE("a unit of which nothing is known has no number", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  CHECK(ToString(index.places().Of(PassOf(0, -1, -5))).empty());
  CHECK(ToString(index.places().Of(PassOf(99, 1, 4))).empty() ==
        false);  // a stage that is not in the trace counts microbatches, as boundaries do
  CHECK(ToString(Places(TraceIndex(RunTrace{})).Of(PassOf(0, 0, 0))).empty());
}

}  // namespace
}  // namespace troupe
