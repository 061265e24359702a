// Trace files of up to two processes, and everything that is concluded from them.
#include <cstring>
#include <iostream>
#include <sstream>

#include "tests/fuzz/scratch.hpp"
#include "tests/trace/export/lint/lint.hpp"
#include "trace/analyze/critical.hpp"
#include "trace/analyze/diff.hpp"
#include "trace/analyze/link_time.hpp"
#include "trace/analyze/live.hpp"
#include "trace/analyze/messages.hpp"
#include "trace/analyze/replay.hpp"
#include "trace/analyze/stall.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/analyze/why.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/sql.hpp"
#include "trace/run_files.hpp"

namespace troupe::fuzz {
namespace {

/// Runs `analysis`, which may say that the trace lacks what it needs.
template <class F>
void Try(F&& analysis) {
  try {
    analysis();
  } catch (const std::invalid_argument&) {
  } catch (const std::out_of_range&) {
  } catch (const std::runtime_error&) {
  }
}

void ExplainSteps(const TraceIndex& index, const Steps& steps) {
  const Usual usual(index);
  Format(FindStall(index, usual), index);
  const int actors = std::min<int>(4, static_cast<int>(index.trace().actors.size()));
  for (int actor = -1; actor < actors; ++actor) {
    if (actor >= 0) LastActivity(index, usual, actor);
    for (const StepSpan& span : steps.all()) {
      const auto asked = actor < 0 ? std::vector<int>{} : std::vector<int>{actor};
      Try([&] { Format(ExplainWait(index, usual, span, asked), index, usual); });
    }
  }
}

void CompareWithRule(const TraceIndex& index, const Steps& steps) {
  Try([&] {
    const RuleInputs rule = RuleOf(index.trace());
    for (const StepSpan& span : steps.all()) {
      const OrderComparison comparison = CompareOrders(index, span.round, rule);
      Format(comparison, index.trace());
      Format(ReplayStep(index, span.round, rule, comparison));
    }
  });
}

void RequireClean(const LintReport& report) {
  if (report.found.empty()) return;
  std::cerr << Format(report);
  Require(false);
}

/// What we write, importers draw.
void Export(const TraceIndex& index, const Steps& steps) {
  const Timeline timeline = MakeTimeline(index, steps.all(), Stretch::kWhole);
  std::ostringstream proto;
  WritePerfetto(proto, index, timeline);
  // A trace of nothing has no packets, which the linter takes for another kind of file.
  if (!proto.str().empty()) RequireClean(Lint(proto.str()));
  std::ostringstream page;
  PageRun run;
  run.timeline_json = PageTimelineJson(index, timeline, "[]");
  WritePage(page, PageKind::kTimeline, {run});
  Try([&] { TraceDatabase(index, steps).Query("select count(*) from messages"); });
}

void Analyze(const RunTrace& trace) {
  const TraceIndex index(trace);
  const Steps steps(index);
  if (steps.all().size() > 64) return;
  DescribeGaps(trace);
  Format(Summarize(index, steps.all()), index, steps);
  ExplainSteps(index, steps);
  CompareWithRule(index, steps);
  for (const StepSpan& span : steps.all()) {
    const CriticalPath path = CriticalPathOf(index, span);
    for (const Segment& segment : path.segments) BucketOf(index, segment);
    Format(path, index, 100'000);
  }
  Try([&] { Format(Compare(index, steps, index, steps)); });
  Try([&] { FindMessages(index, steps, {.actor = "stage", .limit = 100}); });
  if (trace.stages.size() >= 2) LinkTime(trace, trace.stages[0], trace.stages[1]);
  Export(index, steps);
}

}  // namespace
}  // namespace troupe::fuzz

/// The first four bytes say how long the first file is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  if (size < 4) return 0;
  std::uint32_t first = 0;
  std::memcpy(&first, data, sizeof(first));
  const fuzz::Bytes rest(data + 4, size - 4);
  const std::size_t cut = std::min<std::size_t>(first, rest.size());
  std::vector<NamedTraceFile> named;
  int number = 0;
  for (const fuzz::Bytes bytes : {rest.first(cut), rest.subspan(cut)}) {
    const std::string name = "n" + std::to_string(number++) + ".trace";
    if (bytes.empty()) continue;
    fuzz::Try([&] {
      named.push_back({name, ReadTraceFile(fuzz::TheScratch().Write(name, bytes))});
    });
  }
  if (named.empty()) return 0;
  const RunFiles chosen = ChooseRunFiles(named);
  Format(ActorsNow(chosen.files, NewestTime(chosen.files)), 20);
  fuzz::Analyze(MergeTraces(chosen.files, "run"));
  return 0;
}
