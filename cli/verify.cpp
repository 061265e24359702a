#include <CLI/CLI.hpp>
#include <memory>

#include "app/cluster_run.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"

namespace troupe {

void AddVerify(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "verify",
      "Verify a layout: train it and an unsharded reference (a plain libtorch loop) from\n"
      "the same weights on the same samples, and compare after every step each\n"
      "parameter's gradient, value and optimizer state with the reference, relative to\n"
      "that tensor's own maximum. Limits: 1e-5 in float32, 1e-10 in float64, 0.15 in bfloat16\n"
      "(docs/verify.md).\n"
      "Exit code: 0 equal, 1 different or failed, 2 configuration or data are wrong; with\n"
      "--local also 3 a process was lost, 4 the processes did not find each other.");
  auto arguments = std::make_shared<ClusterArguments>();
  arguments->work.verify = true;
  AddConfigArguments(*verb, arguments->work.config);
  AddLocalArguments(*verb, *arguments);
  AddVerifyArguments(*verb, arguments->work);
  // The shared descriptions are for `node`, where these options need --verify.
  verb->get_option("--steps")->description("training steps to compare");
  verb->get_option("--dtype")->description(
      "precision of both sides; float64 leaves rounding no room to hide a fault");
  SetCommand(*verb, command, [arguments] { return RunHere(*arguments); });
}

}  // namespace troupe
