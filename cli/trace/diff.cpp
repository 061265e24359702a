#include "trace/analyze/diff.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/find_run.hpp"
#include "cli/trace/trace.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {

void AddTraceDiff(CLI::App& trace, Command& command) {
  struct Arguments {
    std::string before;
    std::string after;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* verb = AddRunVerb(
      trace, "diff",
      "Say where the extra milliseconds of a run's steps over another's went: what its\n"
      "critical path has more of (adds up to the difference of the steps), which work and\n"
      "which messages take longer, and who waits longer for what. Medians over steps.",
      arguments->before);
  verb->add_option("RUN_B", arguments->after, "the other run directory: the slower one, say")
      ->required()
      ->transform(FindRun);
  SetAction(*verb, command, [arguments] {
    const OpenTrace before(arguments->before);
    const OpenTrace after(arguments->after);
    std::cout << WhatIsMissing(before.trace) << WhatIsMissing(after.trace);
    std::cout << Format(Compare(before.index, before.steps, after.index, after.steps),
                        before.directory, after.directory);
    return static_cast<int>(kExitDone);
  });
}

}  // namespace troupe
