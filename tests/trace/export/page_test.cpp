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

TEST_CASE("the page draws every slice and arrow in a browser", "[trace][browser]") {
  if (OutputOf("command -v chromium").empty()) {
    WARN("skipped: chromium is not installed");
    return;
  }
  generated::Spec spec;
  spec.dp = 2;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Timeline timeline = MakeTimeline(index, steps.all());
  const auto folder =
      std::filesystem::temp_directory_path() / ("troupe-page-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "page.html", std::ios::binary) << [&] {
    std::ostringstream page;
    WritePage(page, index, timeline,
              {ToJson(StageTable(Summarize(index, steps.all()), index)), "[[1,5.5],[2,4.5]]"});
    return page.str();
  }();
  const std::string dom =
      OutputOf("timeout 50 chromium --headless --no-sandbox --disable-gpu --user-data-dir='" +
               folder.string() + "/profile' --virtual-time-budget=3000 --dump-dom 'file://" +
               folder.string() + "/page.html#hover' 2>/dev/null");
  // 10 devices in 3 groups, one process's memory in one; "ready" is said after all was drawn.
  CHECK_THAT(dom, Catch::Contains("data-ready=\"" + std::to_string(timeline.slices.size()) + " " +
                                  std::to_string(timeline.arrows.size()) + " 15\""));
  CHECK_THAT(dom, Catch::Contains("<td>language.s1</td>"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe
