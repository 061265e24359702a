#include "cluster/transport_choice.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <functional>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <sstream>
#include <string_view>

#include "cluster/host_identity.hpp"

namespace troupe {
namespace {

constexpr const char* kSharedMemory = "posix,cma";

/// Whether a list of transports has one for which `is` holds.
bool Names(const std::string& ucx_tls, const std::function<bool(const std::string&)>& is) {
  std::istringstream list(ucx_tls);
  for (std::string one; std::getline(list, one, ',');)
    if (is(one)) return true;
  return false;
}

/// Whether UCX stays within this machine with these transports.
bool IsSharedMemory(const std::string& ucx_tls) {
  constexpr std::array<std::string_view, 9> kWithin{"posix", "sysv", "cma",  "self", "shm",
                                                    "sm",    "mm",   "knem", "xpmem"};
  return !Names(ucx_tls, [&](const std::string& one) {
    return std::find(kWithin.begin(), kWithin.end(), one) == kWithin.end();
  });
}

std::string TextOf(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  } else {
    return "";
  }
  if (inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr) return "";
  return text.data();
}

}  // namespace

bool NamesTcp(const std::string& ucx_tls) {
  return Names(ucx_tls, [](const std::string& one) { return one == "tcp" || one == "all"; });
}

Carrier ChooseCarrier(const std::string& ucx_tls, const std::string& host,
                      const std::string& other) {
  if (ucx_tls == "none") return Carrier::kProvenTcp;
  if (SharesMemory(host, other)) return Carrier::kUcx;
  return ucx_tls == "auto" || IsSharedMemory(ucx_tls) ? Carrier::kProvenTcp : Carrier::kUcx;
}

std::string ChooseUcxTransports(const std::string& ucx_tls) {
  return ucx_tls == "auto" ? kSharedMemory : ucx_tls;
}

std::string InterfaceOf(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (TextOf(entry->ifa_addr) == address) return entry->ifa_name;
  }
  return "";
}

}  // namespace troupe
