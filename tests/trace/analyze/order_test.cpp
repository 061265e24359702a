#include "trace/analyze/order.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

TEST_CASE("what the rule ran is what the rule predicts", "[trace]") {
  generated::Spec spec;
  spec.dp = 2;
  spec.evaluates_first = true;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const OrderComparison comparison = CompareOrders(index, 2, RuleOf(trace));
  CHECK(comparison.not_predicted.empty());
  REQUIRE(comparison.orders.size() == 10);
  for (const ComparedOrder& order : comparison.orders) CHECK(order.differences.empty());
  CHECK(comparison.orders.back().predicted == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("passes that swapped places are marked", "[trace]") {
  RunTrace trace = generated::Generate({});
  // Of language.s1 on rank 4, the second forward and its backward.
  generated::SwapPasses(trace, 4, 1, 5);
  const TraceIndex index(trace);
  const OrderComparison comparison = CompareOrders(index, 1, RuleOf(trace));
  CHECK(comparison.orders.back().differences == std::vector<int>{2, 3});
  const std::string text = Format(comparison, trace);
  CHECK_THAT(text, Catch::Contains("language.s1 dp0 rank 4  ran   F0 B0 B1 F1 F2 B2 F3 B3\n"
                                   "                        rule  F0 B0 F1 B1 F2 B2 F3 B3\n"
                                   "                                    ^^ ^^\n"));
  CHECK_THAT(text, Catch::Contains("1 of 5 orders, "));
}

TEST_CASE("stages on the same ranks get no prediction, and a reason", "[trace]") {
  RunTrace trace = generated::Generate({});
  for (TraceWork& work : trace.work) {
    if (work.pass.rank == 0) work.pass.rank = 1;
  }
  const TraceIndex index(trace);
  const OrderComparison comparison = CompareOrders(index, 1, RuleOf(trace));
  CHECK_THAT(comparison.not_predicted, Catch::Contains("vision.s0 and language.s0 share ranks"));
  CHECK_THAT(Format(comparison, trace), Catch::Contains("no prediction: "));
}

TEST_CASE("a stage that does not go back is predicted without backwards", "[trace]") {
  generated::Spec spec;
  spec.evaluates_first = true;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  for (const ComparedOrder& order : CompareOrders(index, 0, RuleOf(trace)).orders) {
    CHECK(order.predicted == "F0 F1 F2 F3");
    CHECK(order.differences.empty());
  }
}

}  // namespace
}  // namespace troupe
