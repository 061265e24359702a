#include "transport/row_exchange.hpp"

#include <catch2/catch.hpp>

#include "tests/transport/crew.hpp"

namespace troupe {
namespace {

/// Rows [first, first + count) of member `member`: value = 1000 * member + row.
Buffer RowsOf(int member, std::int64_t first, std::int64_t count) {
  Buffer rows = Buffer::Allocate({count, 2}, DType::kFloat32);
  for (std::int64_t i = 0; i < count * 2; ++i) {
    rows.as<float>()[i] = static_cast<float>(1000 * member + first + i / 2);
  }
  return rows;
}

std::vector<float> FirstColumn(const Buffer& rows) {
  std::vector<float> values;
  for (std::int64_t r = 0; r < rows.num_rows(); ++r) values.push_back(rows.as<float>()[r * 2]);
  return values;
}

ExchangePlan PlanOf(std::vector<RowMove> moves, std::vector<std::int64_t> rows_out) {
  return {std::move(moves), std::move(rows_out), {2}, DType::kFloat32};
}

}  // namespace

TEST_CASE("rows change ranks by the plan, one row to several ranks too", "[transport]") {
  // Member 0 has rows 0-3, member 1 rows 0-1. Member 0 ends with 1's last row and its own 0-1;
  // member 1 with 0's rows 1-3; member 2, which had none, with 0's row 3 and 1's row 0.
  const ExchangePlan plan = PlanOf({{1, 0, {1, 2}, {0, 1}},
                                    {0, 0, {0, 2}, {1, 3}},
                                    {0, 1, {1, 4}, {0, 3}},
                                    {0, 2, {3, 4}, {0, 1}},
                                    {1, 2, {0, 1}, {1, 2}}},
                                   {3, 3, 2});
  CHECK_FALSE(plan.local());
  std::vector<std::vector<float>> out(3);
  const auto outcomes = testing::RunGroup(3, [&](Communicator& group) {
    HostRowMemory host;
    std::vector<Buffer> rows;
    if (group.rank() == 0) rows = {RowsOf(0, 0, 1), RowsOf(0, 1, 3)};  // in two pieces
    if (group.rank() == 1) rows = {RowsOf(1, 0, 2)};
    out[static_cast<std::size_t>(group.rank())] =
        FirstColumn(ExchangeRows(group, plan, rows, host));
  });
  REQUIRE(outcomes == testing::All(3, "ok"));
  CHECK(out[0] == std::vector<float>{1001, 0, 1});
  CHECK(out[1] == std::vector<float>{1, 2, 3});
  CHECK(out[2] == std::vector<float>{3, 1000});
}

TEST_CASE("rows that stay are not copied and wait for no other rank", "[transport]") {
  HostRowMemory host;
  auto group = MakeLocalGroup(2, std::make_shared<AbortSignal>());
  const ExchangePlan plan = PlanOf({{0, 0, {0, 3}, {0, 3}}, {1, 1, {0, 1}, {0, 1}}}, {3, 1});
  CHECK(plan.local());
  const Buffer rows = RowsOf(0, 0, 3);
  CHECK(ExchangeRows(*group[0], plan, {rows}, host).data() == rows.data());  // member 1 never calls
}

TEST_CASE("rows of another width are refused", "[transport]") {
  HostRowMemory host;
  auto group = MakeLocalGroup(1, std::make_shared<AbortSignal>());
  const ExchangePlan plan = PlanOf({{0, 0, {0, 1}, {0, 1}}}, {1});
  CHECK_THROWS_WITH(ExchangeRows(*group[0], plan, {Buffer::Zeros({1, 3}, DType::kFloat32)}, host),
                    "row exchange: expected rows of [2] float32, got [1, 3] float32");
}

}  // namespace troupe
