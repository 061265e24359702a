#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "app/describe.hpp"
#include "app/work.hpp"
#include "cli/commands.hpp"
#include "cli/describe_memory.hpp"
#include "configs/loader.hpp"
#include "modules/device/backend.hpp"

namespace troupe {
namespace {

struct CheckArguments {
  ConfigArguments config;
  std::string explain;
  bool print_config = false;
};

int Check(const CheckArguments& arguments) {
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  if (!arguments.explain.empty()) {
    try {
      std::cout << Explain(loaded, arguments.explain);
    } catch (const std::invalid_argument& e) {
      std::cerr << e.what() << '\n';
      return kExitBadInput;
    }
    return kExitDone;
  }
  if (arguments.print_config) {
    std::cout << loaded.resolved_toml;
    return kExitDone;
  }
  WarnOfRemarks(loaded);
  const JobPlan plan(loaded.config);
  const std::string processes = ProcessTable(plan, ProcessPlan(loaded.config.cluster), nullptr);
  const std::string routes = RouteTable(plan);
  std::cout << LayoutTable(plan) << '\n'
            << processes << (processes.empty() ? "" : "\n") << StageTable(plan) << '\n'
            << routes << (routes.empty() ? "" : "\n") << MemoryTable(plan) << OffloadText(plan)
            << GpuTable(plan);
  const std::string missing = MissingFor(loaded.config.cluster.backend);
  if (!missing.empty()) std::cout << "cannot be run by this build: " << missing << '\n';
  return kExitDone;
}

}  // namespace

void AddCheck(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "check",
      "Show where a configuration would run; starts nothing.\n"
      "Prints the layout of every module, the stage graph with the distance to the sink,\n"
      "the routes of every edge, a memory estimate, and with backend \"cuda\" the GPU of every\n"
      "rank. Nothing is refused because of an estimate. Mistakes are printed all at once\n"
      "as file:line:column. Data files are not opened. Exit code: 0 it fits together, 2 it does "
      "not.");
  auto arguments = std::make_shared<CheckArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option(
          "--explain", arguments->explain,
          "only print the value of this key, the file and line that set it, if any, and its\n"
          "meaning; of a table: all its keys")
      ->type_name("KEY");
  verb->add_flag("--print-config", arguments->print_config,
                 "only print every value, defaults included, as one TOML file");
  SetCommand(*verb, command, [arguments] { return Check(*arguments); });
}

}  // namespace troupe
