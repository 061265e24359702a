#include "cli/shared_arguments.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "app/find_run.hpp"
#include "cli/commands.hpp"

namespace troupe {

void SetCommand(CLI::App& verb, Command& command, Command action) {
  verb.callback([&command, action = std::move(action)] { command = action; });
}

void AddConfigArguments(CLI::App& app, ConfigArguments& arguments, bool required) {
  app.add_option("CONFIG", arguments.path, "the TOML file; docs/config.md describes every key")
      ->required(required);
  app.add_option("--set", arguments.overrides,
                 "a value on top of the file, as KEY=VALUE; may be repeated\n"
                 "(--set run.steps=20 --set modules.language.layout.tp=1)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void AddFaultArgument(CLI::App& app, std::vector<std::string>& faults) {
  app.add_option("--plant-fault", faults)->allow_extra_args(false)->group("");
}

void AddLocalArguments(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--local", arguments.local,
                 "run in K processes of this machine instead of one, as on a cluster")
      ->type_name("K")
      ->check(CLI::Range(1, 256));
}

void AddResumeArgument(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--resume", arguments.resume,
                 "resume this run after its newest checkpoint, in its directory; runs/latest or\n"
                 "NAME for the newest runs/NAME-TIME. Without CONFIG with the run's own. Model\n"
                 "and layouts must be the same; ranks and resources may differ, and with --set\n"
                 "the optimizer (docs/cli.md)")
      ->type_name("RUN_DIRECTORY")
      ->transform(FindRun)
      ->check([](const std::string& path) {
        return path.empty() ? std::string("expected a run directory, got \"\"") : std::string();
      });
}

void AddVerifyArguments(CLI::App& app, WorkArguments& arguments) {
  app.add_option("--steps", arguments.steps, "verify: training steps to compare")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--dtype", arguments.dtype,
                 "verify: precision of both sides; float64 leaves rounding no room to hide a fault")
      ->check(CLI::IsMember({"float32", "float64", "bfloat16"}));
}

void AddMemberArguments(CLI::App& verb, MemberArguments& arguments) {
  verb.add_option("--address", arguments.address,
                  "this node's own address, where others reach it (default: the one it reaches\n"
                  "node 0 from)")
      ->type_name("HOST");
  verb.add_option("--key-file", arguments.key_file,
                  "the run key, the same on every node (or TROUPE_KEY_FILE); see `troupe key`")
      ->type_name("FILE");
  // Hidden: passed by a launcher.
  verb.add_option("--child", arguments.launcher)->group("");
  verb.add_option("--key-descriptor", arguments.key_descriptor)->group("");
  verb.add_option("--config-descriptor", arguments.config_descriptor)->group("");
  verb.add_option("--local-processes", arguments.local_processes)->group("");
}

}  // namespace troupe
