#include <chrono>
#include <functional>
#include <iostream>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/critical.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/analyze/why.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {
namespace {

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Not run by default: prints what analyses and exports of a large trace take.
TEST_CASE("what a trace of a million messages takes", "[.][slow][trace]") {
  generated::Spec spec;
  spec.dp = 2;
  spec.steps = 100;
  spec.microbatches = 80;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Usual usual(index);
  std::cout << trace.messages.size() << " messages, " << trace.work.size() << " work\n";
  std::cout << "index    " << Seconds([&] { TraceIndex again(trace); }) << " s\n";
  std::cout << "summary  " << Seconds([&] { Summarize(index, steps.all()); }) << " s\n";
  std::cout << "why      " << Seconds([&] { ExplainWait(index, usual, steps.Of(50), {}); })
            << " s\n";
  std::cout << "critical " << Seconds([&] {
    for (const StepSpan& span : steps.all()) CriticalPathOf(index, span);
  }) << " s for all steps\n";
  std::ostringstream out;
  std::cout << "perfetto " << Seconds([&] {
    WritePerfetto(out, index, MakeTimeline(index, steps.In(StepRange{10, 19})));
  }) << " s for 10 steps, "
            << out.str().size() / 1000000 << " MB\n";
  CHECK(trace.messages.size() > 500'000);
}

}  // namespace
}  // namespace troupe
