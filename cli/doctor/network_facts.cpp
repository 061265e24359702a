// The facts of facts.hpp about the network.
#include <array>
#include <cstdlib>
#include <cstring>
#include <net/if.h>
#include <netdb.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "cli/doctor/facts.hpp"
#include "cluster/address_class.hpp"
#include "cluster/socket.hpp"
#include "cluster/transport_choice.hpp"

namespace troupe {
namespace {

std::string InDigits(const ResolvedAddress& address) {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length,
                                text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

/// 0 if the system does not report it.
int MtuOf(const std::string& interface) {
  const Socket any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  if (!any || interface.size() >= sizeof request.ifr_name) return 0;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size());
  return ioctl(any.fd(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

/// All of 127.0.0.0/8 is local, although interfaces list only one address of it.
std::string InterfaceHere(const std::string& digits) {
  return IsLoopback(digits) ? "lo" : InterfaceOf(digits);
}

}  // namespace

NodeFacts LookUp(const ClusterNode& node) {
  NodeFacts facts;
  facts.name = node.name;
  facts.address = node.address;
  if (node.address.empty()) return facts;
  try {
    for (const ResolvedAddress& address : Resolve({node.address, 0})) {
      const std::string digits = InDigits(address);
      if (facts.resolved.empty()) facts.resolved = digits;
      facts.interface = InterfaceHere(digits);
      if (facts.here()) {
        facts.resolved = digits;
        facts.mtu = MtuOf(facts.interface);
        break;
      }
    }
  } catch (const std::runtime_error& e) {
    facts.error = e.what();
  }
  return facts;
}

bool IsHere(const std::string& host) { return LookUp({"", host, 0}).here(); }

std::string TryListening(const std::string& host, std::uint16_t port) {
  try {
    static_cast<void>(Socket::Listen({host, port}));
    return "";
  } catch (const SocketError& e) {
    return e.what();
  }
}

int FreePorts(const std::string& range, int enough) {
  const auto dash = range.find('-');
  const long first = std::strtol(range.c_str(), nullptr, 10);
  const long last =
      dash == std::string::npos ? first : std::strtol(range.c_str() + dash + 1, nullptr, 10);
  int free = 0;
  for (long port = first; port <= last && port <= 65'535 && free < enough; ++port) {
    if (TryListening("0.0.0.0", static_cast<std::uint16_t>(port)).empty()) ++free;
  }
  return free;
}

}  // namespace troupe
