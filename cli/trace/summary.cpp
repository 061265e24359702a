#include "trace/analyze/summary.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/trace/trace.hpp"

namespace troupe {

void AddTraceSummary(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::string steps;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "summary",
      "Say where the time went: per stage and replica how long its devices worked, ran\n"
      "something else, waited (for which message from whom), and how long no pass ran\n"
      "(bubble); the memory of each rank's GPU; per edge the messages, bytes and time in\n"
      "mailboxes; the longest waits; and what the trace lacks.",
      arguments->run);
  AddSteps(*verb, arguments->steps);
  SetAction(*verb, command, [arguments] {
    const std::optional<StepRange> range = RangeOf(arguments->steps);
    const OpenTrace run(arguments->run);
    std::cout << Format(Summarize(run.index, run.steps.In(range)), run.index, run.steps);
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
