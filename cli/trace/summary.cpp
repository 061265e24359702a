#include "trace/analyze/summary.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/trace/trace.hpp"

namespace troupe {

void AddTraceSummary(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string run;
    std::string steps;
    bool actors = false;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "summary",
      "Print where the time went: per stage and replica how long its devices were busy\n"
      "(computing, or ready to and without a core), did other work, waited, by cause, and\n"
      "computed nothing (bubble); the time of checkpoints; the memory of each rank's GPU; per\n"
      "edge the messages, bytes and time in mailboxes; the longest waits; gaps of the trace.",
      arguments->run);
  AddSteps(*verb, arguments->steps);
  verb->add_flag("--actors", arguments->actors,
                 "name the message that ended each wait, and the actor that sent it");
  SetAction(*verb, command, [arguments] {
    const std::optional<StepRange> range = RangeOf(arguments->steps);
    const OpenedTrace run(arguments->run);
    std::cout << Format(Summarize(run.index, run.steps.In(range)), run.index, run.steps,
                        arguments->actors ? Detail::kActors : Detail::kPlain);
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
