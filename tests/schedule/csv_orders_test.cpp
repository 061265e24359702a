#include <catch2/catch.hpp>

#include "tests/schedule/csv_text.hpp"

namespace troupe {

TEST_CASE("orders come back from their CSV as they were", "[schedule]") {
  const auto orders = InterleavedOrders(4, 2, 8);
  CHECK(ParseCsvOrders(ToCsv(orders)) == orders);
  CHECK(ToCsv(InterleavedOrders(1, 1, 2)) == "0F0,0B0,0F1,0B1\n");
}

TEST_CASE("a CSV with transfers and bubbles has the orders of its passes", "[schedule]") {
  const auto orders = ParseCsvOrders(
      "0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0, 0B1\r\n"
      ",1UNSHARD,1RECV_F0,1F0,1B0,1F1,\"1B1\",1RESHARD,1REDUCE_GRAD\n\n");
  CHECK(ToCsv(orders) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST_CASE("a stage with parts of backwards has parts of backwards only", "[schedule]") {
  const auto orders = ParseCsvOrders("0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n");
  REQUIRE(orders.size() == 2);
  CHECK(ToString(OrderedRule(orders[0], 0).order) == "F0 F1 B0 W0 B1 W1");
  CHECK(OrderedRule(orders[0], 0).splits_backward);
  CHECK(ToString(OrderedRule(orders[1], 1).order) == "F0 B0 F1 B1");
  CHECK_FALSE(OrderedRule(orders[1], 1).splits_backward);
  CHECK(ToCsv(orders) == "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1B0,1F1,1B1\n");
}

TEST_CASE("comments are skipped and what shares a cell runs one after the other", "[schedule]") {
  const auto orders = ParseCsvOrders("# stage 0 = language.s0\n0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  CHECK(ToCsv(orders) == "0F0,0F1,0B0,0B1\n");
}

TEST_CASE("what is no CSV of orders is refused with its place", "[schedule]") {
  CHECK_THROWS_WITH(ParseCsvOrders("0F0\n1F0,,1X0\n"),
                    "row 1 column 2: expected F, B, I, W, SEND_F, ... after the stage, as in 0F3, "
                    "got \"1X0\"");
}

}  // namespace troupe
