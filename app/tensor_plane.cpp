#include "app/tensor_plane.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cluster/host_identity.hpp"
#include "cluster/transport_choice.hpp"
#include "transport/plane_by_peer.hpp"
#include "transport/tcp/plane.hpp"

namespace troupe {
namespace {

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

/// All addresses, in digits, from which the processes of a job may send.
std::vector<std::string> AddressesOf(const Roster& roster) {
  std::vector<std::string> addresses;
  for (const Hello& member : roster.members) {
    for (const ResolvedAddress& address : Resolve({member.address.host, 1})) {
      const std::string digits = InDigits(address);
      const bool known = std::ranges::find(addresses, digits) != addresses.end();
      if (!digits.empty() && !known) addresses.push_back(digits);
    }
  }
  return addresses;
}

UcxOptions UcxOptionsOf(const TransportConfig& transport, const Roster& roster, ProcessId self,
                        const RunKey& key, PlaneSettings settings) {
  UcxOptions options{std::move(settings), {}, transport.net_devices, transport.port_range, {}, {}};
  std::vector<std::string> hosts;
  for (const Hello& hello : roster.members) hosts.push_back(hello.host);
  options.tls = ChooseUcxTransports(transport, hosts);
  if (NamesTcp(options.tls) && options.net_devices.empty()) {
    options.net_devices = InterfaceOf(roster.members[static_cast<std::size_t>(self)].address.host);
    // If the user names interfaces, others send from addresses that are not in the roster.
    if (!options.net_devices.empty()) options.admitted = AddressesOf(roster);
  }
  const auto secret =
      key.Derive("tensors").Authenticate(std::as_bytes(std::span(&roster.nonce, 1)));
  std::copy(secret.begin(), secret.end(), options.secret.begin());
  return options;
}

TcpOptions TcpOptionsOf(std::vector<Peer>& peers, PlaneSettings settings, bool encrypted) {
  TcpOptions options{std::move(settings), {}, encrypted ? "proven tcp, encrypted" : "proven tcp"};
  for (Peer& peer : peers) {
    if (!peer.tensors) continue;
    TcpConnection connection{peer.process, Descriptor(peer.tensors.Release()), {}};
    const auto secret = peer.tensors_session->Derive("tensors").Authenticate({});
    std::copy(secret.begin(), secret.end(), connection.secret.begin());
    options.connections.push_back(std::move(connection));
  }
  return options;
}

}  // namespace

std::function<bool(const Hello& one, const Hello& other)> NeedsConnection(
    const TransportConfig& transport) {
  return [transport](const Hello& one, const Hello& other) {
    return ChooseCarrier(transport, one.host, other.host) == Carrier::kProvenTcp;
  };
}

std::unique_ptr<Plane> OpenTensorPlane(const Config& config, Joined& joined, ProcessId self,
                                       const RunKey& key, PlaneSettings settings) {
  const Roster& roster = joined.roster;
  settings.self = self;
  for (const Hello& hello : roster.members) settings.names.push_back(hello.name);
  settings.verify = VerifyOf(config.transport.verify);
  settings.spin = std::chrono::microseconds(config.transport.spin_us);
  std::vector<bool> by_tcp(roster.members.size());
  bool encrypted = false;
  for (const Peer& peer : joined.peers) {
    by_tcp[static_cast<std::size_t>(peer.process)] = static_cast<bool>(peer.tensors);
    encrypted = encrypted || static_cast<bool>(peer.heartbeat_wire);
  }
  const auto num_by_tcp = static_cast<std::size_t>(std::count(by_tcp.begin(), by_tcp.end(), true));
  std::unique_ptr<Plane> tcp;
  if (num_by_tcp > 0 || joined.peers.empty())
    tcp = std::make_unique<TcpPlane>(TcpOptionsOf(joined.peers, settings, encrypted));
  if (tcp && num_by_tcp == joined.peers.size()) return tcp;
  auto ucx = std::make_unique<UcxPlane>(
      UcxOptionsOf(config.transport, roster, self, key, std::move(settings)));
  if (!tcp) return ucx;
  return std::make_unique<PlaneByPeer>(std::move(ucx), std::move(tcp), std::move(by_tcp));
}

std::unique_ptr<UcxOptions> UcxOptionsHere(const TransportConfig& transport, int here,
                                           bool elsewhere) {
  const std::string own = HostIdentity();
  const auto by_ucx = [&](const std::string& other) {
    return ChooseCarrier(transport, own, other) == Carrier::kUcx;
  };
  const bool with_others = elsewhere && by_ucx("elsewhere");
  if (!(here > 1 && by_ucx(own)) && !with_others) return nullptr;
  std::vector<std::string> hosts(static_cast<std::size_t>(here), own);
  if (with_others) hosts.emplace_back("elsewhere");
  auto options = std::make_unique<UcxOptions>();
  options->names = {"here", "elsewhere"};
  options->tls = ChooseUcxTransports(transport, hosts);
  options->net_devices = transport.net_devices;
  options->port_range = transport.port_range;
  return options;
}

std::string DescribeTensorPlane(const Plane& plane, const Roster& roster,
                                const TransportConfig& transport) {
  std::vector<std::string> names;
  std::vector<std::string> hosts;
  for (const Hello& member : roster.members) {
    names.push_back(member.name);
    hosts.push_back(member.host);
  }
  bool by_ucx = false;
  bool by_tcp = false;
  for (const Hello& member : roster.members) {
    if (member.process == plane.self()) continue;
    const bool proven = ChooseCarrier(transport, hosts[static_cast<std::size_t>(plane.self())],
                                      member.host) == Carrier::kProvenTcp;
    by_tcp = by_tcp || proven;
    by_ucx = by_ucx || !proven;
  }
  std::string text = DescribeTransports(plane, names);
  if (by_tcp) {
    text += transport.ucx_tls == "none" ? "; without a port, transport.ucx_tls is \"none\""
                                        : "; tcp where no memory is shared, without a port";
  }
  if (by_ucx && NamesTcp(ChooseUcxTransports(transport, hosts)))
    text += "; UCX listens on a port, as transport.tcp or transport.ucx_tls requests";
  return text;
}

}  // namespace troupe
