#include "schedule/csv_orders.hpp"

#include <catch2/catch.hpp>

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

TEST_CASE("what is no CSV of orders is refused with its place", "[schedule]") {
  const auto refused = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(ParseCsvOrders(text), message);
  };
  const std::string expected = "expected STAGE, one of F, B, I, W, and MICROBATCH as in 0F3, got ";
  refused("", "expected a row for each rank, got none");
  refused("0F0\n1F0,,1X0\n", "row 1, entry 2: " + expected + "\"1X0\"");
  refused("F0", "row 0, entry 0: " + expected + "\"F0\"");
  refused("0F", "row 0, entry 0: " + expected + "\"0F\"");
  refused("0F1b", "row 0, entry 0: " + expected + "\"0F1b\"");
  refused("-1F0", "row 0, entry 0: " + expected + "\"-1F0\"");
  refused("0F99999999999999999999", "row 0, entry 0: " + expected + "\"0F99999999999999999999\"");
}

}  // namespace troupe
