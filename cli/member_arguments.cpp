#include "cli/member_arguments.hpp"

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/cause.hpp"

extern char** environ;

namespace troupe {

Variables ReadVariables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

void AddMemberArguments(CLI::App& verb, MemberArguments& arguments) {
  verb.add_option("--address", arguments.address,
                  "this node's own address, where others reach it (default: the one it reaches\n"
                  "node 0 from)")
      ->type_name("HOST");
  verb.add_option("--key-file", arguments.key_file,
                  "the run key, the same on every node (or TROUPE_KEY_FILE); see `troupe key`")
      ->type_name("FILE");
  // Not for people.
  verb.add_option("--child", arguments.launcher)->group("");
  verb.add_option("--key-descriptor", arguments.key_descriptor)->group("");
  verb.add_option("--local-processes", arguments.local_processes)->group("");
}

RunKey ReadKey(const MemberArguments& arguments) {
  try {
    if (arguments.key_descriptor >= 0) return RunKey::FromDescriptor(arguments.key_descriptor);
    if (!arguments.key_file.empty()) return RunKey::ReadFile(arguments.key_file);
  } catch (const std::runtime_error& e) {
    throw LaunchError(e.what());
  }
  throw LaunchError(
      "a job of several processes needs a run key, the same file on every node: make one with "
      "`troupe key FILE`, then say --key-file FILE or set TROUPE_KEY_FILE");
}

Variables SettleMember(MemberArguments& arguments) {
  // Who starts a child says everything; the launcher's variables are about its parent.
  const Variables variables = arguments.child() ? Variables() : ReadVariables();
  if (arguments.child()) {
    SendCausesToLauncher();
    EndWithParent(arguments.launcher);
  }
  if (arguments.key_file.empty()) {
    if (const std::string* path = FindVariable(variables, "TROUPE_KEY_FILE")) {
      arguments.key_file = *path;
    }
  }
  return variables;
}

ProcessPlan PlanOf(const MemberArguments& arguments, const ClusterConfig& cluster) {
  return arguments.local_processes > 0 ? LocalPlan(cluster, arguments.local_processes)
                                       : ProcessPlan(cluster);
}

ProcessPlan LocalPlan(const ClusterConfig& cluster, int processes) {
  try {
    return ProcessPlan::Local(cluster, processes);
  } catch (const std::invalid_argument& e) {
    throw LaunchError(std::string("--local: ") + e.what());
  }
}

MemberArguments LocalMember(const Meeting& meeting, int processes) {
  MemberArguments member;
  member.join = Meeting::FreeAddress();
  member.key_descriptor = meeting.key();
  member.address = "127.0.0.1";
  member.local_processes = processes;
  return member;
}

ChildProcess ChildOf(const std::string& verb, const ConfigArguments& config,
                     const MemberArguments& member, const ProcessPlan& plan,
                     const PlannedProcess& process) {
  std::vector<std::string> words = {verb, config.path, "--child", std::to_string(getpid())};
  const auto say = [&words](const std::string& name, const std::string& value) {
    words.insert(words.end(), {name, value});
  };
  for (const std::string& set : config.overrides) say("--set", set);
  say("--node", std::to_string(process.process) + "/" + std::to_string(plan.num_processes()));
  if (member.join) say("--join", *member.join);
  if (member.key_descriptor >= 0) {
    say("--key-descriptor", std::to_string(kInherited));
  } else {
    say("--key-file", member.key_file);
  }
  if (!member.address.empty()) say("--address", member.address);
  if (member.local_processes > 0) say("--local-processes", std::to_string(member.local_processes));
  return {process.name, std::move(words), member.key_descriptor};
}

}  // namespace troupe
