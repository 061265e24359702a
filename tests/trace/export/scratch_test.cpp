#include <catch2/catch.hpp>
#include <fstream>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/lint.hpp"

namespace troupe {
TEST_CASE("scratch", "[.][scratch]") {
  generated::Spec spec;
  spec.processes = 2;
  spec.dp = 2;
  spec.steps=4;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Timeline timeline = MakeTimeline(index, steps.all());
  std::ofstream page("/tmp/h2/page.html"), pf("/tmp/h2/a.pftrace"), js("/tmp/h2/a.json");
  WritePage(page, index, timeline, {ToJson(StageTable(Summarize(index, steps.all()), index)), "[[1,5.6],[2,5.1],[3,4.4],[4,4.1]]"});
  std::ostringstream a, b;
  WritePerfetto(a, index, timeline);
  WriteChrome(b, index, timeline);
  pf << a.str(); js << b.str();
  puts(Format(Lint(a.str())).c_str());
  puts(Format(Lint(b.str())).c_str());
}
}
