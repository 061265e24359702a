#include "cluster/transport_choice.hpp"

#include <algorithm>
#include <array>
#include <ifaddrs.h>
#include <memory>
#include <sstream>
#include <string_view>

#include "cluster/host_identity.hpp"
#include "cluster/socket.hpp"

namespace troupe {
namespace {

constexpr const char* kSharedMemory = "posix,cma";

/// Whether UCX stays within this machine with these transports.
bool IsSharedMemory(const std::string& ucx_tls) {
  constexpr std::array<std::string_view, 9> kWithin{"posix", "sysv", "cma",  "self", "shm",
                                                    "sm",    "mm",   "knem", "xpmem"};
  std::istringstream list(ucx_tls);
  for (std::string one; std::getline(list, one, ',');)
    if (std::find(kWithin.begin(), kWithin.end(), one) == kWithin.end()) return false;
  return true;
}

}  // namespace

Carrier ChooseCarrier(const TransportConfig& transport, const std::string& host,
                      const std::string& other) {
  if (transport.ucx_tls == "none") return Carrier::kProvenTcp;
  if (SharesMemory(host, other) || transport.tcp == TransportTcp::kUcx) return Carrier::kUcx;
  return transport.ucx_tls == "auto" || IsSharedMemory(transport.ucx_tls) ? Carrier::kProvenTcp
                                                                          : Carrier::kUcx;
}

std::string ChooseUcxTransports(const TransportConfig& transport,
                                const std::vector<std::string>& hosts) {
  if (transport.ucx_tls != "auto") return transport.ucx_tls;
  if (transport.tcp != TransportTcp::kUcx) return kSharedMemory;
  bool all_share = true;
  for (const std::string& a : hosts) {
    for (const std::string& b : hosts) {
      if (&a == &b || SharesMemory(a, b)) continue;
      if (SameMachine(a, b)) return "tcp";
      all_share = false;
    }
  }
  return all_share ? kSharedMemory : std::string(kSharedMemory) + ",tcp";
}

std::string InterfaceOf(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && FromSystem(*entry->ifa_addr).host == address)
      return entry->ifa_name;
  }
  return "";
}

}  // namespace troupe
