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
      "Say what each stage ran in a step (F forward, B backward of a microbatch of the\n"
      "step), beside what its rule would run if messages took no time, for passes as\n"
      "long as those of the step are on average. Differences are marked. The last line says\n"
      "how long a simulation of the step takes with the durations it had.",
      arguments->run);
  AddStep(*verb, arguments->step, "training step (default: the last that has ended)");
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    std::cout << WhatIsMissing(run.trace);
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
