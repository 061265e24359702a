#include "app/member.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "app/cause.hpp"
#include "app/resume.hpp"
#include "app/tensor_plane.hpp"
#include "checkpoint/weights_folder.hpp"
#include "cluster/address_class.hpp"
#include "cluster/host_identity.hpp"
#include "cluster/socket.hpp"
#include "cluster/variables.hpp"
#include "configs/paths.hpp"
#include "data/digest.hpp"

extern char** environ;

namespace troupe {
namespace {

/// Resolves a join address to digits. Retries until `deadline`, since a name may appear later than
/// its host, as in Kubernetes. Throws JoinError.
std::string ResolvedHost(const Address& seed, Deadline deadline) {
  constexpr std::chrono::milliseconds kAgain{500};
  for (;;) {
    try {
      const std::string digits = InDigits(Resolve(seed).front());
      return digits.empty() ? seed.host : digits;
    } catch (const std::runtime_error& e) {
      if (std::chrono::steady_clock::now() + kAgain >= deadline) throw JoinError({e.what()});
    }
    std::this_thread::sleep_for(kAgain);
  }
}

}  // namespace

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

Variables SettleMember(MemberArguments& arguments, bool lasting) {
  // A child gets everything as arguments; the environment describes its parent.
  const Variables variables = arguments.child() ? Variables() : ReadVariables();
  if (arguments.child()) {
    SendCausesToLauncher();
    const bool is_missed = lasting && arguments.local_processes == 0;
    EndWithParent(arguments.launcher, is_missed ? SIGKILL : SIGTERM);
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

Descriptor NewKey() { return RunKey::Generate().ToDescriptor(); }

MemberArguments LocalMember(const Descriptor& key, int processes) {
  MemberArguments member;
  // A port that was free a moment ago.
  member.join = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
  member.key_descriptor = key.get();
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

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::unique_ptr<TlsContext> TlsOf(const ClusterConfig& cluster, const Address& seed,
                                  std::chrono::milliseconds patience) {
  // If TLS does not depend on the address, Join() reports a name that does not resolve.
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  const bool open = cluster.tls == ClusterTls::kAuto;
  if (!TlsIsOn(cluster.tls, open ? ResolvedHost(seed, deadline) : seed.host)) return nullptr;
  if (cluster.tls_ca.empty()) {
    throw LaunchError("connections to " + ToString(seed) +
                      " must be encrypted (cluster.tls = \"auto\" requires it if the address "
                      "is neither loopback nor private): set cluster.tls_ca, tls_certificate and "
                      "tls_key, or cluster.tls = \"off: the network is trusted\"");
  }
  try {
    return std::make_unique<TlsContext>(
        TlsFiles{cluster.tls_ca, cluster.tls_certificate, cluster.tls_key});
  } catch (const std::runtime_error& e) {
    throw LaunchError(e.what());
  }
}

bool SpeaksForNode(const MemberArguments& member, const ProcessPlan& plan, ProcessId self) {
  if (self == 0 || !member.child()) return true;
  const int node = plan.Of(self).node;
  return node != plan.Of(0).node && plan.OfNode(node).front().process == self;
}

JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const MemberArguments& arguments) {
  const PlannedProcess& me = plan.Of(self);
  const auto node = static_cast<std::size_t>(me.node);
  JoinOptions options;
  options.self.process = self;
  options.self.num_processes = plan.num_processes();
  options.self.name = me.name;
  // Paths and the join timeout may differ between processes. The digests compare the contents of
  // the files.
  const auto shared = [](const std::string& key, const KeySpec& spec) {
    return !HoldsPath(spec) && key != "cluster.join_timeout_s";
  };
  options.self.config = KeyLines(config, shared) + DataDigests(config) + WeightsDigests(config);
  options.self.host = HostIdentity();
  options.self.pid = getpid();
  options.self.address.host = arguments.address;
  if (arguments.address.empty() && !arguments.spare && node < config.cluster.nodes.size()) {
    options.self.address.host = config.cluster.nodes[node].address;
  }
  if (self == 0) options.self.address = seed;
  for (const PlannedProcess& process : plan.processes()) options.names.push_back(process.name);
  options.tensors = NeedsConnection(config.transport);
  options.seed = seed;
  options.timeout = Milliseconds(config.cluster.join_timeout_s);
  // --local starts each process once, and no other process has its key.
  options.answer_latecomers = arguments.local_processes == 0;
  if (SpeaksForNode(arguments, plan, self)) {
    options.print = [](const std::string& line) { std::cerr << line + "\n" << std::flush; };
  }
  return options;
}

}  // namespace troupe
