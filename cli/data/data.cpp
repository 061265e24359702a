#include "cli/data/data.hpp"

#include <CLI/CLI.hpp>

namespace troupe {

void AddData(CLI::App& app, Command& command) {
  auto* data = app.add_subcommand("data",
                                  "Check, index and look at data sets.\n"
                                  "Exit code: 0 done, 1 failed, 2 wrong arguments.");
  data->require_subcommand(1);
  AddDataCheck(*data, command);
  AddDataIndex(*data, command);
  AddDataStat(*data, command);
  AddDataShow(*data, command);
}

}  // namespace troupe
