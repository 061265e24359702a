#include <CLI/CLI.hpp>
#include <iostream>

#include "app/version.hpp"
#include "cli/commands.hpp"

namespace troupe {

void AddVersion(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand("version",
                                  "Print versions of troupe and its libraries, the GPU parts of "
                                  "this\nbuild, and whether it can use them.\n"
                                  "Exit code: 0.");
  SetCommand(*verb, command, [] {
    std::cout << VersionText() << '\n' << GpuText();
    return kExitDone;
  });
}

}  // namespace troupe
