#include <CLI/CLI.hpp>
#include <iostream>

#include <caf/config.hpp>

#include "cli/commands.hpp"
#include "modules/torch/compute.hpp"

namespace troupe {

std::string VersionText() {
  const std::string commit = TROUPE_COMMIT;
  return std::string("troupe " TROUPE_VERSION) + (commit.empty() ? "" : " (" + commit + ")") +
         ", CAF " + std::to_string(CAF_MAJOR_VERSION) + "." + std::to_string(CAF_MINOR_VERSION) +
         "." + std::to_string(CAF_PATCH_VERSION) + ", " + SetupCompute().description;
}

void AddVersion(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand("version",
                                  "Print versions of troupe and its libraries.\n"
                                  "Exit code: 0.");
  verb->callback([&command] {
    command = [] {
      std::cout << VersionText() << '\n';
      return kExitDone;
    };
  });
}

}  // namespace troupe
