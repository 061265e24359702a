#include <CLI/CLI.hpp>

#include "cli/commands.hpp"

namespace troupe {

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

}  // namespace troupe
