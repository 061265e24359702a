// The verbs of `troupe`. Each adds itself to the command line; its help lists its exit codes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/exit_code.hpp"
#include "app/handed_config.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace troupe {

struct MemberArguments;

/// The action of the verb on the command line. Returns the exit code.
using Command = std::function<int()>;

/// The whole program. Returns its exit code.
int RunProgram(int argc, char** argv);

/// Makes `action` the command when `verb` is on the command line.
void SetCommand(CLI::App& verb, Command& command, Command action);

/// Adds CONFIG and --set. A verb with an optional CONFIG finds one itself.
void AddConfigArguments(CLI::App& app, ConfigArguments& arguments, bool required = true);
/// Adds --set for the configuration of a run that was made.
void AddRunOverrides(CLI::App& verb, std::vector<std::string>& overrides);
/// Adds an option that is one of `choices`; `chosen` holds the default, then the choice. The help is
/// `about` and the choices.
void AddChoice(CLI::App& verb, const std::string& name, const std::vector<std::string>& choices,
               std::string& chosen, const std::string& about = "");
/// The checks of options for what is to be written: why it cannot be a folder, or a file; "" if it can.
std::string WhyNoFolder(const std::string& path);
std::string WhyNoFile(const std::string& path);
/// Adds all member options but --node and --join, whose help differs by verb.
void AddMemberArguments(CLI::App& verb, MemberArguments& arguments);

// Each sets `command` when its verb is on the command line.
void AddTrain(CLI::App& app, Command& command);
void AddNode(CLI::App& app, Command& command);
void AddFeed(CLI::App& app, Command& command);
void AddKey(CLI::App& app, Command& command);
void AddCheck(CLI::App& app, Command& command);
void AddDoctor(CLI::App& app, Command& command);
void AddVerify(CLI::App& app, Command& command);
void AddTrace(CLI::App& app, Command& command);
void AddSchedule(CLI::App& app, Command& command);
void AddBench(CLI::App& app, Command& command);
void AddBenchLayouts(CLI::App& bench, Command& command);
void AddPlan(CLI::App& app, Command& command);
void AddProfile(CLI::App& app, Command& command);
void AddData(CLI::App& app, Command& command);
void AddTop(CLI::App& app, Command& command);
void AddReport(CLI::App& app, Command& command);
void AddInit(CLI::App& app, Command& command);
void AddExport(CLI::App& app, Command& command);
void AddGenerate(CLI::App& app, Command& command);
void AddCkpt(CLI::App& app, Command& command);

}  // namespace troupe
