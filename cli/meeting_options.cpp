#include "cli/meeting_options.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <unistd.h>
#include <vector>

#include "cluster/host_identity.hpp"
#include "cluster/transport_choice.hpp"
#include "configs/resolved.hpp"

namespace troupe {
namespace {

std::string ConfigLines(const Config& config) {
  std::string lines;
  for (const ResolvedTable& table : ResolvedTables(config)) {
    for (const ResolvedKey& key : table.keys) {
      lines += (table.dotted.empty() ? "" : table.dotted + ".") + key.name;
      lines += " = " + key.value + "\n";
    }
  }
  return lines;
}

Verify VerifyOf(TransportVerify verify) {
  switch (verify) {
    case TransportVerify::kOff:
      return Verify::kOff;
    case TransportVerify::kHeader:
      return Verify::kHeader;
    case TransportVerify::kPayload:
      return Verify::kPayload;
  }
  return Verify::kHeader;
}

}  // namespace

JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const std::string& address,
                          const std::string& build) {
  const PlannedProcess& me = plan.processes()[static_cast<std::size_t>(self)];
  const auto node = static_cast<std::size_t>(me.node);
  JoinOptions options;
  options.self.process = self;
  options.self.num_processes = plan.num_processes();
  options.self.name = me.name;
  options.self.build = build;
  options.self.config = ConfigLines(config);
  options.self.host = HostIdentity();
  options.self.pid = getpid();
  options.self.address.host = address;
  if (address.empty() && node < config.cluster.nodes.size()) {
    options.self.address.host = config.cluster.nodes[node].address;
  }
  if (self == 0) options.self.address = seed;
  options.seed = seed;
  options.timeout = std::chrono::milliseconds(
      static_cast<std::int64_t>(config.cluster.join_timeout_s * 1000.0));
  return options;
}

UcxOptions PlaneOptionsOf(const Config& config, const Roster& roster, ProcessId self,
                          const RunKey& key) {
  UcxOptions options;
  std::vector<std::string> hosts;
  for (const Hello& hello : roster.members) {
    options.names.push_back(hello.name);
    hosts.push_back(hello.host);
  }
  const TransportConfig& transport = config.transport;
  options.self = self;
  options.tls = transport.ucx_tls == "auto" ? ChooseTransports(hosts) : transport.ucx_tls;
  options.net_devices = transport.net_devices;
  if (options.net_devices.empty() && options.tls.find("tcp") != std::string::npos) {
    options.net_devices =
        InterfaceOf(roster.members[static_cast<std::size_t>(self)].address.host);
  }
  options.port_range = transport.port_range;
  const auto secret =
      key.Derive("tensors").Authenticate(std::as_bytes(std::span(&roster.nonce, 1)));
  std::copy(secret.begin(), secret.end(), options.secret.begin());
  options.verify = VerifyOf(transport.verify);
  options.spin = std::chrono::microseconds(transport.spin_us);
  return options;
}

}  // namespace troupe
