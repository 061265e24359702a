#include "tests/trace/generated/generated.hpp"

#include <catch2/catch.hpp>

#include "trace/analyze/order.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

TEST_CASE("scratch", "[.][scratch]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Steps steps(index);
  puts(Format(Summarize(index, steps.all()), index, steps).c_str());
  puts(Format(CompareOrders(index, steps.Of(2).round, RuleOf(trace)), trace).c_str());
}

}  // namespace
}  // namespace troupe
