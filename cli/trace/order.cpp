#include "trace/analyze/order.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/trace/trace.hpp"
#include "trace/analyze/replay.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {

void AddTraceOrder(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::int64_t step = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "order",
      "Print the passes of each stage in a step (F forward, B backward of a microbatch of\n"
      "the step), next to the order that its rule gives if messages take no time and passes\n"
      "last as long as in the step on average. Differences are marked. The last line has the\n"
      "simulated time of the step with its measured durations.",
      arguments->run);
  AddStep(*verb, arguments->step, "training step (default: the last that has ended)");
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    std::cout << DescribeGaps(run.trace);
    const StepSpan& span = StepOrLast(run.steps, arguments->step);
    const RuleInputs rule = RuleOfRun(run);
    const OrderComparison comparison = CompareOrders(run.index, span.round, rule);
    std::cout << "step " << span.step << '\n'
              << Format(comparison, run.trace)
              << Format(ReplayStep(run.index, span.round, rule, comparison));
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
