#include "cluster/address_class.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <variant>

namespace troupe {

using Ipv4 = std::uint32_t;  // in host byte order
using Ipv6 = std::array<std::uint8_t, 16>;

static Ipv4 FromBytes(const std::uint8_t* bytes) {
  Ipv4 address = 0;
  for (int i = 0; i < 4; ++i) address = address << 8U | bytes[i];
  return address;
}

/// Parses a literal address; one mapped into IPv6 becomes IPv4. monostate for a name.
static std::variant<std::monostate, Ipv4, Ipv6> Parse(const std::string& host) {
  std::array<std::uint8_t, 4> four{};
  if (inet_pton(AF_INET, host.c_str(), four.data()) == 1) return FromBytes(four.data());
  Ipv6 six{};
  const std::string without_zone = host.substr(0, host.find('%'));
  if (inet_pton(AF_INET6, without_zone.c_str(), six.data()) != 1) return {};
  static constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
  if (std::equal(kMapped.begin(), kMapped.end(), six.begin())) return FromBytes(six.data() + 12);
  return six;
}

/// Whether the first `bits` bits of both are equal.
static bool Inside(Ipv4 address, Ipv4 network, unsigned bits) {
  return (address ^ network) >> (32U - bits) == 0;
}

bool IsLoopback(const std::string& host) {
  const auto address = Parse(host);
  if (const auto* four = std::get_if<Ipv4>(&address)) return Inside(*four, 0x7f00'0000, 8);
  const auto* six = std::get_if<Ipv6>(&address);
  static constexpr Ipv6 kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return six != nullptr && *six == kLoopback;
}

bool IsPrivate(const std::string& host) {
  const auto address = Parse(host);
  if (const auto* four = std::get_if<Ipv4>(&address)) {
    return Inside(*four, 0x0a00'0000, 8) || Inside(*four, 0xac10'0000, 12) ||
           Inside(*four, 0xc0a8'0000, 16) || Inside(*four, 0xa9fe'0000, 16);
  }
  const auto* six = std::get_if<Ipv6>(&address);
  if (six == nullptr) return false;
  const bool unique_local = ((*six)[0] & 0xfeU) == 0xfc;
  const bool link_local = (*six)[0] == 0xfe && ((*six)[1] & 0xc0U) == 0x80;
  return unique_local || link_local;
}

bool TlsIsOn(ClusterTls choice, const std::string& join_host) {
  if (choice != ClusterTls::kAuto) return choice == ClusterTls::kOn;
  return !IsLoopback(join_host) && !IsPrivate(join_host);
}

}  // namespace troupe
