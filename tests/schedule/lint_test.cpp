// Tables of actions: what is read, what is refused, where they deadlock.
#include "schedule/lint.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// 1F1B of two stages and three microbatches.
const char* const kGood =
    "0F0,0F1,,,0B0,0F2,,0B1,,,0B2\n"
    ",1F0,1B0,,1F1,1B1,,1F2,1B2\n";

std::string Problem(const std::string& text, std::int64_t max_activations = 0) {
  return Lint(ParseActionTable(text), max_activations).problem;
}

}  // namespace

TEST_CASE("a table is read cell by cell, blanks counted", "[schedule]") {
  const ActionTable table = ParseActionTable(
      "# made by hand\n# stage 1 = language.s1\n"
      "0F0, 0SEND_F0,,0UNSHARD\r\n"
      "\"1RECV_F0\",(1F0;1I12)OVERLAP_F_B,1W3,1REDUCE_GRAD\n");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0][1] == Action{ActionKind::kSendForward, 0, 0, 1});
  CHECK(table.rows[0][2] == Action{ActionKind::kUnshard, 0, -1, 3});
  CHECK(table.rows[1][2] == Action{ActionKind::kInput, 1, 12, 1});
  CHECK(table.rows[1][3] == Action{ActionKind::kWeight, 1, 3, 2});
  CHECK(table.names.at(1) == "language.s1");
  CHECK_FALSE(table.names.contains(0));
  CHECK(ToCsv(table) ==
        "# stage 1 = language.s1\n"
        "0F0,0SEND_F0,,0UNSHARD\n"
        "1RECV_F0,(1F0;1I12)OVERLAP_F_B,1W3,1REDUCE_GRAD\n");
}

TEST_CASE("what is no action is refused with its place", "[schedule]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"", "expected a row for each rank, got none"},
       {"\n\n", "expected a row for each rank, got none"},
       {"0F0,F1", "row 0 column 1: expected a stage below 65536 first, as in 0F3, got \"F1\""},
       {"0F0\n0F0,,0X1", "row 1 column 2: expected F, B, I, W, SEND_F, ... after the stage"},
       {"0F", "row 0 column 0: expected a microbatch up to 1000000 last, as in 0F3, got \"0F\""},
       {"0F-1", "row 0 column 0: expected F, B, I, W"},
       {"0F1x", "expected a microbatch up to 1000000 last"},
       {"99999999999999999999F0", "expected a stage below 65536"},
       {"65536F0", "expected a stage below 65536"},
       {"0F99999999999999999999", "expected a microbatch up to 1000000"},
       {"0UNSHARD3", "expected nothing after UNSHARD"},
       {"(0F1;1B0)", "expected (0F1;1B0)OVERLAP_F_B"},
       {"(0F1;", "expected (0F1;1B0)OVERLAP_F_B"},
       {"(;)OVERLAP_F_B", "expected a stage below 65536"},
       {"\x1b[2J\x01", "got \"?[2J?\""},
       {"# links 0>\n0F0", "expected # links FROM>TO"}}));
  INFO(text);
  CHECK_THROWS_WITH(ParseActionTable(text), Catch::Contains(expected));
}

TEST_CASE("a table that can run is described", "[schedule]") {
  const LintResult result = Lint(ParseActionTable(kGood));
  REQUIRE(result.problem == "");
  CHECK(result.facts.ranks == 2);
  CHECK(result.facts.stages == 2);
  CHECK(result.facts.microbatches == 3);
  // (m + p - 1) (F + B) = (3 + 1) * 3, of which 3 * 3 are busy on each rank.
  CHECK(result.facts.makespan == 12);
  CHECK(result.facts.bubble == Approx(0.25));
  CHECK(result.facts.peak_activations == std::vector<std::int64_t>{2, 1});
}

TEST_CASE("what is wrong with a table is said in one line", "[schedule]") {
  CHECK(Problem("0F0,0B1,0F1,0B0") == "row 0 column 1: 0B1 before 0F1");
  CHECK(Problem("0F0,0W0,0I0") == "row 0 column 1: 0W0 before 0I0");
  CHECK(Problem("0F0,0F1,0B0") == "incomplete: no row has 0B1 or 0I1");
  CHECK(Problem("0F0,0I0") ==
        "incomplete: no row has 0W0, and 0I0 (row 0 column 1) is only a part");
  CHECK(Problem("0F0,0B0,0W0") ==
        "row 0 column 2: 0W0, but 0B0 (row 0 column 1) is the whole of it");
  CHECK(Problem("0F0,0B0,0F0") == "row 0 column 2: 0F0 again, first in 0F0 (row 0 column 0)");
  CHECK(Problem("0F0,0B0\n1F0,1B0,0F1,0B1") == "row 1 column 2: 0F1, but stage 0 is on row 0");
  CHECK(Problem("0F0,0B0\n2F0,2B0") == "incomplete: no row has 1F0");
  CHECK(Problem("0UNSHARD") == "expected passes such as 0F0, got none");
  CHECK(Problem("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1", 1) ==
        "row 0 column 1: 0F1 is kept with 1 others, expected at most 1 in all");
}

TEST_CASE("rows that wait for each other are a deadlock, whatever other rows do", "[schedule]") {
  CHECK(Problem("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1") ==
        "deadlock: row 0 column 1: 0B0 waits for 1B0 (row 1 column 2), row 1 column 1: 1F1 waits "
        "for 0F1 (row 0 column 2)");
}

TEST_CASE("where sends are written down, every receive needs one", "[schedule]") {
  const std::string row0 = "0F0,0SEND_F0,0RECV_B0,0B0\n";
  CHECK(Problem(row0 + "1RECV_F0,1F0,1B0,1SEND_B0") == "");
  CHECK(Problem(row0 + "1F0,1B0,1SEND_B0") == "row 1 column 0: 1F0 without 1RECV_F0");
  CHECK(Problem(row0 + "1RECV_F0,1F0,1B0") == "row 0 column 2: 0RECV_B0 without 1SEND_B0");
  CHECK(Problem("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0") ==
        "deadlock: row 0 column 1: 0RECV_B0 waits for 1SEND_B0 (row 1 column 3), row 1 column 0: "
        "1RECV_F0 waits for 0SEND_F0 (row 0 column 2)");
  // Two stages of one rank hand over without sending.
  CHECK(Problem("0F0,1F0,1B0,0B0") == "");
}

TEST_CASE("links say which stages feed which", "[schedule]") {
  const std::string rows = "0F0,0B0\n1F0,1B0\n2F0,2B0\n";
  CHECK(Lint(ParseActionTable(rows)).facts.makespan == 9);
  CHECK(Lint(ParseActionTable("# links 0>2 1>2 0>2\n" + rows)).facts.makespan == 6);
  CHECK_THAT(Problem("# links 0>1 1>0 1>2\n" + rows), Catch::StartsWith("deadlock: "));
}

TEST_CASE("no bytes crash the linter or make it slow", "[schedule]") {
  std::mt19937 random(5);
  const std::string letters = "0123FBIW,,\n();#SENDRCV_>x ";
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const auto size = random() % 60;
    for (std::size_t i = 0; i < size; ++i) {
      text +=
          round % 2 == 0 ? letters[random() % letters.size()] : static_cast<char>(random() % 256);
    }
    try {
      Lint(ParseActionTable(text), 1);
    } catch (const std::invalid_argument&) {
    }
  }
  // A stage far away, many microbatches: refused at the first pass that is missing.
  CHECK(Problem("0F0,0B0,65535F1000000") == "incomplete: no row has 0F1");
  // Many rows that all wait for the last.
  std::string wide = "# links";
  for (int stage = 0; stage < 2000; ++stage) wide += " " + std::to_string(stage) + ">2000";
  wide += "\n2000F0,2000F1,2000B0,2000B1\n";
  for (int stage = 0; stage < 2000; ++stage) {
    const std::string s = std::to_string(stage);
    wide += s + "F0," + s + "F1," + s + "B0," + s + "B1\n";
  }
  CHECK(Problem(wide) == "");
}

TEST_CASE("mutated schedules are refused or run, never both", "[schedule]") {
  const ActionTable good = ParseActionTable(kGood);
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    ActionTable table = good;
    auto& row = table.rows[random() % 2];
    std::swap(row[random() % row.size()], row[random() % row.size()]);
    for (std::size_t i = 0; i < row.size(); ++i) row[i].column = static_cast<int>(i);
    const LintResult result = Lint(table);
    refused += result.problem.empty() ? 0 : 1;
    if (result.problem.empty()) CHECK(result.facts.makespan >= 12);
  }
  CHECK(refused > 1000);
  CHECK(refused < 3000);
}

}  // namespace troupe
