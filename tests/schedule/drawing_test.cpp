// Schedules as text, as tables and as pictures.
#include "schedule/drawing.hpp"

#include <catch2/catch.hpp>

#include "schedule/lint.hpp"

namespace troupe {
namespace {

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

Drawing Draw(const StageGraph& graph, const Schedule& schedule, std::int64_t microbatches) {
  const auto simulation =
      Simulate(graph, schedule, EqualDurations(1'000'000, 2'000'000, 1'000'000), microbatches);
  return DrawingOf(graph, schedule, simulation, "a <title>");
}

}  // namespace

TEST_CASE("a schedule is drawn in characters, a row per device", "[schedule]") {
  const StageGraph graph({{"language", 2}}, {});
  const Drawing drawing = Draw(graph, OneForwardOneBackward(LimitsOf(graph)), 3);
  CHECK(ToText(drawing, 11 + 10 + 24) ==
        "a <title>\n"
        "language.s0  0-1-    0===2-1===  2===   25.0%\n"
        "language.s1    0-0===1-1===2-2===       25.0%\n"
        "             0                  12 ms  bubble\n"
        "             - forward  = backward  ~ weights, each after its microbatch\n");
  CHECK(drawing.rows[0].warmup_ns == 4'000'000);
  for (const DrawnRow& row : drawing.rows) CHECK(row.bubble == Approx(0.25));
}

TEST_CASE("stages that share a device share its row", "[schedule]") {
  const StageGraph graph({{"language", 4}}, {});
  Schedule schedule = OneForwardOneBackward(LimitsOf(graph));
  schedule.devices = {{0}, {1}, {0}, {1}};
  const Drawing drawing = Draw(graph, schedule, 2);
  REQUIRE(drawing.rows.size() == 2);
  CHECK(drawing.rows[1].name == "language.s1,s3");
  CHECK(drawing.rows[1].passes.size() == 8);
}

TEST_CASE("the table of a drawing can be run and keeps its order", "[schedule]") {
  SECTION("a graph, with its links") {
    const StageGraph graph({{"vision", 2}, {"detail", 1}, {"language", 2}}, {{0, 2}, {1, 2}});
    const ActionTable table =
        ToTable(Draw(graph, OneForwardOneBackward(LimitsOf(graph)), 5), graph);
    CHECK_THAT(ToCsv(table), Catch::StartsWith("# stage 0 = vision.s0\n") &&
                                 Catch::Contains("# links 0>1 3>4 1>3 2>3\n"));
    CHECK(Lint(ParseActionTable(ToCsv(table))).problem == "");
    CHECK(ParseActionTable(ToCsv(table)).rows == table.rows);
  }
  SECTION("split backwards") {
    const StageGraph graph({{"language", 3}}, {});
    const ActionTable table = ToTable(Draw(graph, {.rules = ZbH1Rules(LimitsOf(graph))}, 4), graph);
    CHECK(table.links.empty());
    const LintResult result = Lint(table);
    CHECK(result.problem == "");
    CHECK(result.facts.peak_activations == std::vector<std::int64_t>{3, 3, 3});
    CHECK_THAT(ToCsv(table), Catch::Contains("0I0") && Catch::Contains("0W0"));
  }
}

TEST_CASE("columns leave a blank where a rank would wait", "[schedule]") {
  ActionTable table = ParseActionTable("0F0,0B0\n1F0,1B0");
  CHECK(AlignColumns(table) == "");
  CHECK(ToCsv(table) == "0F0,,,0B0\n,1F0,1B0\n");
}

TEST_CASE("the picture has a box for every pass and escapes names", "[schedule]") {
  const StageGraph graph({{"language", 3}}, {});
  const std::string svg = ToSvg(Draw(graph, {.rules = ZbH1Rules(LimitsOf(graph))}, 4));
  CHECK_THAT(svg, Catch::StartsWith("<svg ") && Catch::EndsWith("</svg>\n"));
  CHECK(Count(svg, " of stage ") == 3 * 3 * 4);
  CHECK(Count(svg, "warm-up: ") == 3);
  CHECK(Count(svg, "a &lt;title&gt;") == 1);
}

}  // namespace troupe
