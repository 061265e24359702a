#include "app/member_arguments.hpp"

#include <stdexcept>
#include <unistd.h>
#include <utility>
#include <vector>

#include "app/cause.hpp"

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

RunKey ReadKey(const MemberArguments& arguments) {
  try {
    if (arguments.key_descriptor >= 0) return RunKey::FromDescriptor(arguments.key_descriptor);
    if (!arguments.key_file.empty()) return RunKey::ReadFile(arguments.key_file);
  } catch (const std::runtime_error& e) {
    throw LaunchError(e.what());
  }
  throw LaunchError(
      "a job of several processes needs a run key, the same file on every node: make one with "
      "`troupe key FILE`, then pass --key-file FILE or set TROUPE_KEY_FILE");
}

Variables SettleMember(MemberArguments& arguments) {
  // A child gets everything as arguments; the environment describes its parent.
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

ChildProcess ChildOf(const std::string& verb, const std::string& config,
                     const MemberArguments& member, const ProcessPlan& plan,
                     const PlannedProcess& process) {
  std::vector<std::string> words = {verb, config, "--child", std::to_string(getpid())};
  const auto add = [&words](const std::string& name, const std::string& value) {
    words.insert(words.end(), {name, value});
  };
  add("--config-descriptor", std::to_string(kInheritedConfig));
  add("--node", std::to_string(process.process) + "/" + std::to_string(plan.num_processes()));
  if (member.join) add("--join", *member.join);
  if (member.key_descriptor >= 0) {
    add("--key-descriptor", std::to_string(kInheritedKey));
  } else {
    add("--key-file", member.key_file);
  }
  if (!member.address.empty()) add("--address", member.address);
  if (member.local_processes > 0) add("--local-processes", std::to_string(member.local_processes));
  return {process.name, std::move(words), member.key_descriptor, member.config_descriptor};
}

}  // namespace troupe
