#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "app/cause.hpp"
#include "app/version.hpp"
#include "cli/argument_errors.hpp"
#include "cli/commands.hpp"
#include "cluster/descriptors.hpp"
#include "cluster/variables.hpp"
#include "configs/report.hpp"
#include "data/rows/data_error.hpp"
#include "files/file_error.hpp"
#include "kinds/foreign.hpp"
#include "layout/grid.hpp"
#include "modules/torch/compute.hpp"
#include "transport/ucx/plane.hpp"

namespace troupe {
namespace {

constexpr const char* kAbout =
    "troupe trains multimodal models in which every module keeps its own parallel layout and its "
    "own devices.\n\nStart here:\n"
    "  troupe check  configs/shapes.toml    shows where it would run; starts nothing\n"
    "  troupe train  configs/shapes.toml    trains it; writes a run directory in runs/\n"
    "  troupe verify configs/shapes.toml    proves its gradients against an unsharded reference\n";

/// Returns the arguments, with `troupe help [VERB]` as --help and `troupe --version` as
/// `troupe version`.
std::vector<std::string> WordsOf(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    std::erase(words, "help");
    words.emplace_back("--help");
  }
  if (words == std::vector<std::string>{"--version"}) words = {"version"};
  return words;
}

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

/// Runs the command. Only here do exceptions become a line and an exit code.
int Run(const Command& command) {
  try {
    return command();
  } catch (const ConfigErrors& errors) {
    std::cerr << errors.what() << '\n';
    return kExitBadInput;
  } catch (const LayoutError& e) {
    std::cerr << e.what() << '\n';
    return kExitBadInput;
  } catch (const LaunchError& e) {
    PrintCause(e.what());
    return kExitBadInput;
  } catch (const ModelFolderError& e) {
    std::cerr << e.what() << '\n';
    return kExitBadInput;
  } catch (const DataError& e) {
    std::cerr << e.what() << '\n';
    return kExitBadInput;
  } catch (const std::filesystem::filesystem_error& e) {
    // A path without a name is the working directory.
    const std::string path = e.path1().empty() ? "the working directory" : e.path1().string();
    PrintCause(FileError(path, "be used", e.code()).what());
    return kExitFailed;
  } catch (const std::exception& e) {
    PrintCause(e.what());
    return kExitFailed;
  }
}

/// Opens /dev/null for closed standard streams. The next file that is opened would get the number
/// of a closed one, and messages would be written into it.
void OpenStandardStreams() {
  for (int file = open("/dev/null", O_RDWR); file >= 0; file = open("/dev/null", O_RDWR)) {
    if (file <= STDERR_FILENO) continue;
    close(file);
    return;
  }
}

/// Fails if standard output could not be written completely: the output is part of the result.
int WithOutputWritten(int exit_code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush();
  if (written || exit_code != kExitDone) return exit_code;
  PrintCause("standard output: cannot write all of it");
  return kExitFailed;
}

}  // namespace

int RunProgram(int argc, char** argv) {
  RestoreSignalHandlers();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with an error instead
  OpenStandardStreams();
  RaiseDescriptorLimit();
  // Only for verbs that compute: the restart loads libtorch again.
  const std::string verb = argc > 1 ? argv[1] : "";
  constexpr std::array kComputing = {"train", "verify", "node", "generate"};
  if (std::ranges::count(kComputing, verb) > 0) RestartWithBestKernels(argv);
  SetupCompute();
  CLI::App app(kAbout, "troupe");
  app.require_subcommand(1);
  Command command;
  AddTrain(app, command);
  AddCheck(app, command);
  AddVerify(app, command);
  AddNode(app, command);
  AddDoctor(app, command);
  AddFeed(app, command);
  AddKey(app, command);
  AddTrace(app, command);
  AddSchedule(app, command);
  AddBench(app, command);
  AddPlan(app, command);
  AddProfile(app, command);
  AddData(app, command);
  AddTop(app, command);
  AddReport(app, command);
  AddInit(app, command);
  AddExport(app, command);
  AddGenerate(app, command);
  AddCkpt(app, command);
  AddVersion(app, command);
  if (argc < 2) {
    std::cerr << app.help();
    return kExitBadInput;
  }
  std::vector<std::string> words = WordsOf(argc, argv);
  std::string unknown = UnknownVerb(app, words.front());
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() != words.front() || sub->get_require_subcommand_min() == 0) continue;
    if (words.size() == 1) {
      std::cerr << sub->help(app.get_name());
      return kExitBadInput;
    }
    unknown = UnknownVerb(*sub, words[1]);
  }
  if (!unknown.empty()) {
    std::cerr << "troupe: " << unknown << "\nRun `troupe --help`.\n";
    return kExitBadInput;
  }
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& e) {
    std::cerr << "troupe: " << ArgumentError(app, e)
              << "\nRun `troupe --help` or `troupe VERB --help`.\n";
    return kExitBadInput;
  }
  return WithOutputWritten(Run(command));
}

}  // namespace troupe
