#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>

#include "cluster/socket.hpp"
#include "cluster/text.hpp"

namespace troupe {

std::string ToString(const Address& address) {
  const bool bracketed = address.host.find(':') != std::string::npos;
  return (bracketed ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Address FromSystem(const sockaddr& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    return {host, ntohs(v4.sin_port)};
  }
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
    return {host, ntohs(v6.sin6_port)};
  }
  return {"local", 0};
}

Address ParseAddress(const std::string& text) {
  const auto fail = [&](const std::string& why) -> Address {
    throw std::invalid_argument("\"" + text + "\": expected HOST:PORT, such as n0:7420 or " +
                                "[::1]:7420, " + why);
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return fail("got no port");
  Address address;
  address.host = text.substr(0, colon);
  if (address.host.size() >= 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find_first_of(":[]") != std::string::npos) {
    return fail("got a host with a colon or a bracket outside of [ ]");
  }
  if (address.host.empty()) return fail("got no host");
  if (address.host.find_first_of(" \t\r\n/") != std::string::npos)
    return fail("got a host with a space or a slash");
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || rest != end || colon + 1 == text.size())
    return fail("got no port between 0 and 65535");
  return address;
}

std::vector<ResolvedAddress> Resolve(const Address& address) {
  if (address.host.empty()) throw std::runtime_error("cannot resolve an empty host name");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) {
    throw std::runtime_error("cannot resolve " + address.host + ": " +
                             (error == EAI_SYSTEM ? SystemWords(errno) : gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<ResolvedAddress> addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    ResolvedAddress& resolved = addresses.emplace_back();
    std::memcpy(&resolved.storage, info->ai_addr, info->ai_addrlen);
    resolved.length = info->ai_addrlen;
  }
  return addresses;
}

std::string InDigits(const ResolvedAddress& address) {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length,
                                text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

}  // namespace troupe
