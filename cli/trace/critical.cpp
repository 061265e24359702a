#include "trace/analyze/critical.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

#include "cli/trace/trace.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {

void AddTraceCritical(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::int64_t step = 0;
    double fold_ms = 0.1;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "critical",
      "Follow the end of a step back to its beginning: through the work that ended last,\n"
      "the message that started it, the handler that sent that, and so on. This path\n"
      "determines the length of the step; its pieces add up to the step. Shares:\n"
      "compute (devices), boundary (leaders, and rows on their way), queueing (in\n"
      "mailboxes), messages (all other actors, and ways between them), checkpoint (where one\n"
      "was written before the step's first pass).",
      arguments->run);
  AddStep(*verb, arguments->step, "training step (default: the last that has ended)");
  verb->add_option("--fold", arguments->fold_ms,
                   "neighbours shorter than this become one line; 0 shows all")
      ->type_name("MS")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  SetAction(*verb, command, [arguments] {
    const OpenedTrace run(arguments->run);
    std::cout << DescribeGaps(run.trace);
    const StepSpan& span = StepOrLast(run.steps, arguments->step);
    std::cout << Format(CriticalPathOf(run.index, span), run.index,
                        std::llround(arguments->fold_ms * 1e6));
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
