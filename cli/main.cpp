#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>

#include "cli/commands.hpp"
#include "configs/config_error.hpp"
#include "layout/grid.hpp"
#include "modules/torch/compute.hpp"

namespace troupe {
namespace {

constexpr const char* kAbout =
    "troupe trains multimodal models in which every module keeps its own parallel layout and its "
    "own devices.\n\nStart here:\n"
    "  troupe check  configs/shapes.toml    what would run where; starts nothing\n"
    "  troupe train  configs/shapes.toml    trains it; everything lands in runs/\n"
    "  troupe verify configs/shapes.toml    proves its gradients against an unsharded reference\n";

int Main(int argc, char** argv) {
  // Only where something is computed: the restart costs a start of libtorch.
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "train" || verb == "verify") RestartWithBestKernels(argv);
  SetupCompute();
  CLI::App app(kAbout, "troupe");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  Command command;
  AddTrain(app, command);
  AddCheck(app, command);
  AddVerify(app, command);
  AddData(app, command);
  AddVersion(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& e) {
    std::cerr << "troupe: " << e.what() << "\nRun `troupe --help` or `troupe VERB --help`.\n";
    return kExitBadInput;
  }
  try {
    return command();
  } catch (const ConfigErrors& errors) {
    std::cerr << errors.what() << '\n';
    return kExitBadInput;
  } catch (const LayoutError& e) {
    std::cerr << e.what() << '\n';
    return kExitBadInput;
  } catch (const std::exception& e) {
    std::cerr << "troupe: " << e.what() << '\n';
    return kExitFailed;
  }
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
