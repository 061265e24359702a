// The verbs of `troupe`. Each adds itself to the command line and says what it exits with.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace troupe {

/// What the process exits with; docs/cli.md is the user's page.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,    ///< the run failed, or `verify` found a difference; one line says why
  kExitBadInput = 2,  ///< configuration, arguments or data: nothing was started
  kExitLost = 3,      ///< a process or machine of the job was lost; a restart may help
  kExitNotMet = 4,    ///< the processes of the job did not find each other, or do not fit together;
                      ///< `doctor` found what would fail
};

/// A verb, once it is known to be the one that was asked for.
using Command = std::function<int()>;

/// The arguments that every verb on a configuration takes.
struct ConfigArguments {
  std::string path;
  std::vector<std::string> overrides;  ///< "key=value"
};
/// `required`: else a verb without CONFIG finds one itself.
void AddConfigArguments(CLI::App& app, ConfigArguments& arguments, bool required = true);
/// --plant-fault, for tests of what happens then; not shown to people.
void AddFaultArgument(CLI::App& app, std::vector<std::string>& faults);

// Each sets `command` when its verb is on the command line.
void AddTrain(CLI::App& app, Command& command);
void AddNode(CLI::App& app, Command& command);
void AddKey(CLI::App& app, Command& command);
void AddCheck(CLI::App& app, Command& command);
void AddDoctor(CLI::App& app, Command& command);
void AddVerify(CLI::App& app, Command& command);
void AddTrace(CLI::App& app, Command& command);
void AddData(CLI::App& app, Command& command);
void AddTop(CLI::App& app, Command& command);
void AddReport(CLI::App& app, Command& command);
void AddVersion(CLI::App& app, Command& command);

/// "troupe 0.1.0 (commit), CAF 0.17.6, libtorch ..."
std::string VersionText();

}  // namespace troupe
