// The verbs of `troupe`. Each adds itself to the command line; its help lists its exit codes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/config_arguments.hpp"
#include "app/exit_code.hpp"

namespace CLI {
class App;
}

namespace troupe {

/// The action of the verb on the command line. Returns the exit code.
using Command = std::function<int()>;

/// Makes `action` the command when `verb` is on the command line.
void SetCommand(CLI::App& verb, Command& command, Command action);

/// Adds CONFIG and --set. A verb with an optional CONFIG finds one itself.
void AddConfigArguments(CLI::App& app, ConfigArguments& arguments, bool required = true);
/// Adds --plant-fault, which is for tests and hidden from help.
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

}  // namespace troupe
