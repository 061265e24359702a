#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {
namespace {

/// Standard output of a command; empty when it cannot be run.
std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char part[4096];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) output.append(part, size);
  pclose(pipe);
  return output;
}

PageRun RunOf(const std::string& name, const TraceIndex& index, const Timeline& timeline) {
  PageRun run;
  run.name = name;
  const Table table = StageTable(Summarize(index, timeline.steps), index);
  run.timeline_json = PageTimelineJson(index, timeline, ToJson(table));
  run.series_json = R"({"loss":[[1,5.5],[2,4.5]],"held_out_loss":[[0,5.6],[2,4.4]]})";
  return run;
}

TEST_CASE("ranks are called by the stages that they run, and slices by module and microbatch",
          "[trace]") {
  generated::Spec spec;
  spec.evaluates_first = true;
  RunTrace trace = generated::Generate(spec);
  // The first language rank runs the encoder, too.
  for (TraceWork& work : trace.work) {
    if (work.pass.stage == 0) work.pass.rank = 1;
  }
  for (TraceWork& work : trace.work) work.cores = {1000, 500};
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, Steps(index).all());
  const std::string json = RunOf("a", index, timeline).timeline_json;
  CHECK_THAT(json, Catch::Contains(R"("label":"rank 1: vision.s0, language.s0"})"));
  CHECK_THAT(json, Catch::Contains(R"("label":"rank 2: language.s0"})"));
  CHECK_THAT(json, Catch::Contains(R"("modules":[{"name":"vision","short":"v"},)"
                                   R"({"name":"language","short":"l"}])"));
  CHECK_THAT(json, Catch::Contains(R"("stages":[["vision.s0",0],["language.s0",1],)"));
  CHECK_THAT(json, Catch::Contains(R"("F 3")") && !Catch::Contains(R"("F 4")"));
}

TEST_CASE("a checkpoint is a slice of the page, with a colour of its own", "[trace]") {
  generated::Spec spec;
  spec.checkpoint_every = 2;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const PageRun run = RunOf("a", index, MakeTimeline(index, Steps(index).all()));
  CHECK_THAT(run.timeline_json,
             Catch::Contains(R"("restore","checkpoint")") && Catch::Contains(R"("checkpoint 2")"));
  std::ostringstream page;
  WritePage(page, PageKind::kTimeline, {run});
  const std::string shades = page.str().substr(page.str().find("const SHADES"), 200);
  CHECK_THAT(shades, Catch::Contains("checkpoint: ["));
}

TEST_CASE("a page names what it lacks, and what is in it cannot end its script", "[trace]") {
  PageRun run;
  run.name = "</script><b>";
  run.without_timeline = "no timeline: no trace";
  std::ostringstream page;
  WritePage(page, PageKind::kReport, {run, run});
  CHECK_THAT(page.str(), Catch::Contains(R"("timeline":null)") &&
                             Catch::Contains(R"({"report":true,"runs":[)") &&
                             !Catch::Contains("</script><b>"));
}

/// What a browser makes of a page; empty: there is no browser.
std::string DomOf(const std::string& page, const std::string& anchor) {
  if (OutputOf("command -v chromium").empty()) return "";
  const auto folder =
      std::filesystem::temp_directory_path() / ("troupe-page-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "page.html", std::ios::binary) << page;
  const std::string dom =
      OutputOf("timeout 50 chromium --headless --no-sandbox --disable-gpu --user-data-dir='" +
               folder.string() + "/profile' --virtual-time-budget=3000 --dump-dom 'file://" +
               folder.string() + "/page.html" + anchor + "' 2>/dev/null");
  std::filesystem::remove_all(folder);
  return dom;
}

TEST_CASE("the page draws every slice and arrow in a browser", "[trace][browser]") {
  generated::Spec spec;
  spec.dp = 2;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Timeline timeline = MakeTimeline(index, steps.all());
  std::ostringstream page;
  WritePage(page, PageKind::kTimeline, {RunOf("one", index, timeline)});
  const std::string dom = DomOf(page.str(), "#hover");
  if (dom.empty()) {
    WARN("skipped: chromium is not installed");
    return;
  }
  // 10 devices and one process's memory under its heading; "ready" is said after all was drawn.
  CHECK_THAT(dom, Catch::Contains("data-ready=\"" + std::to_string(timeline.slices.size()) + " " +
                                  std::to_string(timeline.arrows.size()) + " 12\""));
  CHECK_THAT(dom, Catch::Contains("<td>language.s1</td>"));
  CHECK_THAT(dom, Catch::Contains("vision (v)") && Catch::Contains("F forward"));
  CHECK_THAT(dom, Catch::Contains("data-curves=\"1\""));
}

/// The text between the first `begin` and the `end` after it; empty where one is missing.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const std::size_t to = text.find(end, from + begin.size());
  if (to == std::string::npos) return "";
  return text.substr(from + begin.size(), to - from - begin.size());
}

/// Leaves "N M" at the body: bars of the table, and those that begin at the left edge of their box,
/// cover their share of it, and have their number to the right.
const char* const kMeasureBars = R"HTML(<script>
const bars = [...document.querySelectorAll("#bubble .share")];
document.body.dataset.bars = bars.length + " " + bars.filter(bar => {
  const box = bar.getBoundingClientRect(), filled = bar.firstChild.getBoundingClientRect();
  const number = document.createRange();
  number.selectNode(bar.nextSibling);
  const share = Math.max(parseFloat(bar.nextSibling.textContent) || 0, 0) / 100;
  return Math.abs(filled.left - box.left) < 0.5 &&
    Math.abs(filled.width - box.width * share) < 0.5 &&
    number.getBoundingClientRect().left > box.right;
}).length;
</script>)HTML";

TEST_CASE("the bars of the page's table grow from left to right, before their numbers",
          "[trace][browser]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  std::ostringstream page;
  WritePage(page, PageKind::kTimeline,
            {RunOf("one", index, MakeTimeline(index, Steps(index).all()))});
  // A block begins at the left edge of the box that it is in.
  const std::string bar = Between(page.str(), ".share i {", "}");
  CHECK_THAT(bar, Catch::Contains("display: block") && !Catch::Contains("right"));
  const std::string cell = Between(page.str(), "const td = tr.insertCell();", "}\n  }");
  CHECK(cell.find("\"share\"), \"i\")") < cell.find("td.append(row[c])"));
  const std::string dom = DomOf(page.str() + kMeasureBars, "");
  if (dom.empty()) {
    WARN("skipped: chromium is not installed");
    return;
  }
  const std::string counts = Between(dom, "data-bars=\"", "\"");
  INFO(counts);
  const std::string bars = Between(" " + counts, " ", " ");
  CHECK(bars != "0");
  CHECK(counts == bars + " " + bars);
}

TEST_CASE("a report shows the curves of all its runs", "[trace][browser]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {Steps(index).Of(2)});
  PageRun other;
  other.name = "other";
  other.series_json = R"({"loss":[[1,0.5]],"learning_rate":[[1,0.001]]})";
  other.facts = {{"global batch", "32"}};
  std::ostringstream page;
  WritePage(page, PageKind::kReport, {RunOf("one", index, timeline), other});
  const std::string dom = DomOf(page.str(), "");
  if (dom.empty()) {
    WARN("skipped: chromium is not installed");
    return;
  }
  CHECK_THAT(dom, Catch::Contains("data-curves=\"2\"") && Catch::Contains("<th>other</th>"));
  CHECK_THAT(dom, Catch::Contains("one, other"));
}

}  // namespace
}  // namespace troupe
