#include <CLI/CLI.hpp>
#include <memory>

#include "app/cluster_run.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"

namespace troupe {

void AddTrain(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "train",
      "Train a configuration in this process, every rank on a separate thread, or\n"
      "with --local in several processes of this machine.\n"
      "Prints a line per step and leaves a run directory with the resolved\n"
      "configuration, metrics.jsonl, the trace and the final weights. Ctrl-C finishes the\n"
      "step under way and saves; a second one ends at once.\n"
      "Exit code: 0 done, 1 the run failed, 2 configuration or data are wrong, 3 a process\n"
      "was lost, 4 the processes did not find each other, 130 or 143 interrupted and saved\n"
      "(docs/cli.md).");
  auto arguments = std::make_shared<ClusterArguments>();
  AddConfigArguments(*verb, arguments->work.config, false);
  AddFaultArgument(*verb, arguments->work.faults);
  AddLocalArguments(*verb, *arguments);
  AddResumeArgument(*verb, *arguments);
  verb->add_option("--restarts", arguments->restarts,
                   "with --local: times to restart, from the newest checkpoint, when a\n"
                   "process is lost")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  SetCommand(*verb, command, [arguments] { return RunHere(*arguments); });
}

}  // namespace troupe
