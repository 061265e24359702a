// Every message of a run is an arrow of what is exported, and every arrow a message: counted on
// runs that really ran, once by SQL over the messages, once by reading the exported file.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"
#include "tests/cli/trace_output.hpp"
#include "tests/trace/export/lint/lint.hpp"
#include "tests/trace/export/lint/perfetto_file.hpp"

namespace troupe {
namespace {

using Ids = std::set<std::uint64_t>;

/// The ids of the messages for which `where` holds; `b` and `e` are the ends of steps 2-4.
Ids IdsWhere(const std::string& run, const std::string& where) {
  std::istringstream rows(Printed({"sql", run,
                                   "with w as (select min(begin_ns) b, max(end_ns) e from steps "
                                   "where step between 2 and 4) "
                                   "select m.id from messages m, w where " +
                                       where,
                                   "--format", "csv", "--limit", "0"}));
  std::string header;
  std::getline(rows, header);
  CHECK(header == "id");
  Ids ids;
  for (std::uint64_t id = 0; rows >> id;) CHECK(ids.insert(id).second);
  return ids;
}

/// The ids of the messages that Perfetto draws an arrow for.
Ids ArrowsOf(const PerfettoFile& file) {
  Ids ids;
  CHECK(file.starts == file.arrows.size());
  CHECK(file.ends == file.arrows.size());
  for (const DrawnArrow& arrow : file.arrows) {
    CHECK(ids.insert(arrow.id).second);
    CHECK(arrow.sent_ns < arrow.begin_ns);  // nothing is received before it is sent
  }
  return ids;
}

std::size_t ArrowsOfPage(const std::string& page) {
  const std::string opening = "id=\"data\">";
  const std::size_t at = page.find(opening) + opening.size();
  return nlohmann::json::parse(
             page.substr(at, page.find("</script>", at) - at))["runs"][0]["timeline"]["arrows"]
      .size();
}

/// What is exported of `run` has an arrow for each of `expected`, and no other.
void CheckExports(const RunFolder& folder, const std::string& run, const Ids& expected,
                  const std::vector<std::string>& range, const std::string& account) {
  for (const std::string format : {"perfetto", "html"}) {
    INFO(format << (range.empty() ? "" : " of steps " + range.back()));
    const std::string file = folder / ("out." + format);
    std::vector<std::string> arguments = {"export", run, "--format", format, "--out", file};
    arguments.insert(arguments.end(), range.begin(), range.end());
    CHECK_THAT(Printed(arguments), Catch::Contains(account));
    const std::string content = ContentOf(file);
    if (format == "perfetto") {
      const LintReport report = Lint(content);
      CHECK(report.flows == static_cast<std::int64_t>(expected.size()));
      CHECK(report.found.empty());
      CHECK(ArrowsOf(ReadPerfetto(content)) == expected);
    }
    if (format == "html") CHECK(ArrowsOfPage(content) == expected.size());
  }
}

std::string AccountOf(std::size_t messages, std::size_t arrows, const std::string& reason) {
  return std::to_string(messages) + " messages in the window, " + std::to_string(arrows) +
         " arrows, " + std::to_string(messages - arrows) + " without" + reason + "\n";
}

}  // namespace

TEST_CASE("every message of a run is an arrow, and every arrow a message", "[cli]") {
  const RunFolder folder;
  // Evaluations between the steps, and the next round announced while one runs.
  REQUIRE(folder
              .Train({"run.steps=6", "run.evaluate_every=3",
                      "data.held_out=" + (folder / "train.json")})
              .exit_code == 0);
  const std::string run = folder.Runs().at(0);
  const Ids all = IdsWhere(run, "1");
  REQUIRE(all.size() > 800);
  CHECK(IdsWhere(run, "begin_ns is null").empty());
  CheckExports(folder, run, all, {}, AccountOf(all.size(), all.size(), ""));

  const std::string labelled = "step between 2 and 4";
  const Ids of_steps = IdsWhere(run, labelled);
  const Ids window = IdsWhere(run, labelled + " or (m.sent_ns < e and m.end_ns >= b)");
  CHECK(of_steps.size() > 300);
  // Some of the steps were sent before them, and others' were sent in them: neither is the other.
  CHECK(IdsWhere(run, labelled + " and m.end_ns < b").size() > 0);
  CHECK(window.size() > of_steps.size());
  CheckExports(folder, run, window, {"--steps", "2-4"},
               AccountOf(window.size(), window.size(), "") + std::to_string(of_steps.size()) +
                   " of the messages are of steps 2-4, " +
                   std::to_string(window.size() - of_steps.size()) +
                   " of other rounds, sent or handled meanwhile\n");
}

TEST_CASE("messages without a handler are counted where arrows are", "[cli]") {
  const RunFolder folder;
  auto arguments =
      folder.Arguments("train", "configs/synthetic_8stages.toml", {"cluster.stall_after_s=0.5"});
  arguments.insert(arguments.end(),
                   {"--plant-fault", "lose@leader detail>language/source.0@GradientSlice@4"});
  REQUIRE(RunTroupe(arguments).exit_code == 1);
  const std::string run = folder.Runs().at(0);
  const Ids handled = IdsWhere(run, "m.begin_ns is not null");
  const std::size_t never = IdsWhere(run, "m.begin_ns is null").size();
  REQUIRE(never > 0);
  CheckExports(folder, run, handled, {},
               AccountOf(handled.size() + never, handled.size(),
                         " (" + std::to_string(never) + " never handled)"));
}

}  // namespace troupe
