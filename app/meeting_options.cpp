#include "app/meeting_options.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <netdb.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "app/tensor_plane.hpp"
#include "cluster/address_class.hpp"
#include "cluster/host_identity.hpp"
#include "cluster/variables.hpp"
#include "configs/paths.hpp"
#include "configs/resolved.hpp"
#include "data/digest.hpp"

namespace troupe {
namespace {

/// Keys that may differ between processes: paths and the join timeout. DataDigests compares the
/// contents of the files.
bool IsOwn(const std::string& key, const KeySpec& spec) {
  return HoldsPath(spec) || key == "cluster.join_timeout_s";
}

/// Resolves a join address to digits. Retries until `deadline`, since a name may appear later than
/// its host, as in Kubernetes. Throws JoinError.
std::string ResolvedHost(const Address& seed, Deadline deadline) {
  constexpr std::chrono::milliseconds kAgain{500};
  for (;;) {
    try {
      const ResolvedAddress first = Resolve(seed).front();
      std::array<char, NI_MAXHOST> host{};
      const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&first.storage), first.length,
                                    host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
      return error == 0 ? host.data() : seed.host;
    } catch (const std::runtime_error& e) {
      if (std::chrono::steady_clock::now() + kAgain >= deadline) throw JoinError({e.what()});
    }
    std::this_thread::sleep_for(kAgain);
  }
}

}  // namespace

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::string ConfigLines(const Config& config) {
  std::string lines;
  for (const ResolvedTable& table : ResolvedTables(config)) {
    for (const ResolvedKey& key : table.keys) {
      const std::string name = (table.dotted.empty() ? "" : table.dotted + ".") + key.name;
      if (!IsOwn(name, *key.spec)) lines += name + " = " + key.value + "\n";
    }
  }
  return lines;
}

std::unique_ptr<TlsContext> TlsOf(const ClusterConfig& cluster, const Address& seed,
                                  std::chrono::milliseconds patience) {
  // If TLS does not depend on the address, Join() reports a name that does not resolve.
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  const bool open = cluster.tls == ClusterTls::kAuto;
  if (!TlsIsOn(cluster.tls, open ? ResolvedHost(seed, deadline) : seed.host)) return nullptr;
  if (cluster.tls_ca.empty()) {
    throw LaunchError("connections to " + ToString(seed) +
                      " must be encrypted (cluster.tls = \"auto\" requires it if the join address "
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

JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const MemberArguments& arguments) {
  const PlannedProcess& me = plan.processes()[static_cast<std::size_t>(self)];
  const auto node = static_cast<std::size_t>(me.node);
  JoinOptions options;
  options.self.process = self;
  options.self.num_processes = plan.num_processes();
  options.self.name = me.name;
  options.self.config = ConfigLines(config) + DataDigests(config);
  options.self.host = HostIdentity();
  options.self.pid = getpid();
  options.self.address.host = arguments.address;
  if (arguments.address.empty() && node < config.cluster.nodes.size()) {
    options.self.address.host = config.cluster.nodes[node].address;
  }
  if (self == 0) options.self.address = seed;
  for (const PlannedProcess& process : plan.processes()) options.names.push_back(process.name);
  options.tensors = NeedsConnection(config.transport);
  options.seed = seed;
  options.timeout = Milliseconds(config.cluster.join_timeout_s);
  // --local starts each process once, and no other process has its key.
  options.answer_latecomers = arguments.local_processes == 0;
  // Only the first child of a launcher reports progress.
  if (self == 0 || !arguments.child()) {
    options.print = [](const std::string& line) { std::cerr << line + "\n" << std::flush; };
  }
  return options;
}

}  // namespace troupe
