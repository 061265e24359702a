#include "trace/export/lint.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/trace/trace.hpp"
#include "configs/text_file.hpp"

namespace troupe {

void AddTraceLint(CLI::App& trace, Command& command) {
  auto path = std::make_shared<std::string>();
  auto* verb = trace.add_subcommand(
      "lint",
      "Check any timeline, JSON or protobuf, for what importers drop, reverse or draw in\n"
      "the wrong place without a word: slices that overlap in part, arrows that end before\n"
      "they start or never, ids used twice, pids below 1, control characters, times that a\n"
      "double cannot hold, tracks that nobody describes, a file that is cut short.\n"
      "Exit code: 0 nothing found, 1 something found, no timeline or not readable, 2 wrong\n"
      "arguments.");
  verb->add_option("FILE", *path, "what `troupe trace export` or any other program wrote")
      ->required();
  SetAction(*verb, command, [path] {
    // A whole run in JSON is some hundred MB.
    constexpr std::size_t kMostBytes = std::size_t{512} << 20U;
    const LintReport report = Lint(ReadWholeFile(*path, kMostBytes));
    if (!report.no_timeline.empty()) {
      std::cerr << "troupe trace lint: " << *path << ": " << Format(report);
    } else {
      std::cout << Format(report);
    }
    return static_cast<int>(report.found.empty() ? kExitDone : kExitFailed);
  });
}

}  // namespace troupe
