#include "tests/trace/generated/generated.hpp"

#include <catch2/catch.hpp>

#include "trace/analyze/order.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/analyze/critical.hpp"
#include "trace/analyze/diff.hpp"
#include "trace/analyze/why.hpp"
#include "trace/analyze/stall.hpp"


namespace troupe {
namespace {

TEST_CASE("scratch", "[.][scratch]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Steps steps(index);
  puts(Format(Summarize(index, steps.all()), index, steps).c_str());
  puts(Format(CompareOrders(index, steps.Of(2).round, RuleOf(trace)), trace).c_str());
  puts(Format(CriticalPathOf(index, steps.Of(2)), index, 5000).c_str());
  generated::Spec spec;
  spec.slow = {{"vision.s0", 0, WorkKind::kForward, 5, 3000}, {"vision.s0", 0, WorkKind::kForward, 1, 1000},{"vision.s0", 0, WorkKind::kForward, 9, 1000}};
  const RunTrace slow = generated::Generate(spec);
  const TraceIndex slow_index(slow);
  const Steps slow_steps(slow_index);
  const Usual usual(slow_index);
  puts(Format(ExplainWait(slow_index, usual, SlowestStep(slow_steps), {}), slow_index, usual).c_str());
  puts(Format(ExplainWait(index, Usual(index), steps.Of(2), {}), index, usual).c_str());
  puts(Format(Compare(index, steps, slow_index, slow_steps), "a", "b").c_str());
  spec.slow[0].for_ever = true;
  const RunTrace hung = generated::Generate(spec);
  const TraceIndex hi(hung);
  puts(Format(FindStall(hi, Usual(hi)), hi).c_str());
  spec.slow.clear();
  spec.lost_type = "Slice"; spec.lost_unit=5;
  const RunTrace lost = generated::Generate(spec);
  const TraceIndex li(lost);
  puts(Format(FindStall(li, Usual(li)), li).c_str());
}

}  // namespace
}  // namespace troupe
