#include "transport/ucx/port_filter.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <system_error>

namespace troupe {
namespace {

// Offsets of a filter for the fields of an IP header, independent of the bytes already read.
constexpr std::uint32_t kNetwork = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kSourceOf4 = kNetwork + 12;
constexpr std::uint32_t kSourceOf6 = kNetwork + 8;
constexpr std::uint32_t kWholePacket = 0xffffffff;

sock_filter Load(std::uint32_t offset) {
  return {static_cast<std::uint16_t>(BPF_LD | BPF_W | BPF_ABS), 0, 0, offset};
}
/// Skips `otherwise` instructions unless the loaded value is `value`.
sock_filter SkipUnless(std::uint32_t value, std::size_t otherwise) {
  return {static_cast<std::uint16_t>(BPF_JMP | BPF_JEQ | BPF_K), 0,
          static_cast<std::uint8_t>(otherwise), value};
}
sock_filter Return(std::uint32_t value) {
  return {static_cast<std::uint16_t>(BPF_RET | BPF_K), 0, 0, value};
}

std::uint32_t WordOf(const void* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return ntohl(word);
}

/// Accepts packets from IPv4 address `words[0]`, or IPv6 address `words`.
void Admit(std::vector<sock_filter>& program, const std::vector<std::uint32_t>& words) {
  const std::uint32_t first = words.size() == 1 ? kSourceOf4 : kSourceOf6;
  program.push_back({static_cast<std::uint16_t>(BPF_LD | BPF_B | BPF_ABS), 0, 0, kNetwork});
  program.push_back({static_cast<std::uint16_t>(BPF_ALU | BPF_RSH | BPF_K), 0, 0, 4});
  program.push_back(SkipUnless(words.size() == 1 ? 4 : 6, 2 * words.size() + 1));
  for (std::size_t i = 0; i < words.size(); ++i) {
    program.push_back(Load(first + 4 * static_cast<std::uint32_t>(i)));
    program.push_back(SkipUnless(words[i], 2 * (words.size() - 1 - i) + 1));
  }
  program.push_back(Return(kWholePacket));
}

std::vector<std::uint32_t> WordsOf(const std::string& address) {
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return {WordOf(bytes.data())};
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1)
    return {WordOf(&bytes[0]), WordOf(&bytes[4]), WordOf(&bytes[8]), WordOf(&bytes[12])};
  throw std::runtime_error("port filter: expected a numeric address, got \"" + address + "\"");
}

void SetOption(int socket, int option, const void* value, socklen_t size, const char* name) {
  if (::setsockopt(socket, SOL_SOCKET, option, value, size) != 0) {
    throw std::runtime_error(std::string("port filter: ") + name + ": " +
                             std::generic_category().message(errno));
  }
}

bool Listens(int socket) {
  int listens = 0;
  int domain = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    return false;
  size = sizeof domain;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
         (domain == AF_INET || domain == AF_INET6);
}

}  // namespace

std::vector<int> ListeningSockets() {
  std::vector<int> sockets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (Listens(descriptor)) sockets.push_back(descriptor);
  }
  if (error) throw std::runtime_error("/proc/self/fd: " + error.message());
  return sockets;
}

void AdmitOnly(int socket, const std::vector<std::string>& addresses) {
  std::vector<sock_filter> program;
  for (const std::string& address : addresses) Admit(program, WordsOf(address));
  program.push_back(Return(0));
  if (program.size() > BPF_MAXINSNS) {
    throw std::runtime_error("port filter: got more addresses than fit, " +
                             std::to_string(addresses.size()));
  }
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  SetOption(socket, SO_ATTACH_FILTER, &filter, sizeof filter, "SO_ATTACH_FILTER");
  const int locked = 1;
  SetOption(socket, SO_LOCK_FILTER, &locked, sizeof locked, "SO_LOCK_FILTER");
}

void AdmitOnlyBySockets(const std::vector<int>& before, const std::vector<std::string>& addresses) {
  for (const int socket : ListeningSockets()) {
    if (std::find(before.begin(), before.end(), socket) == before.end())
      AdmitOnly(socket, addresses);
  }
}

}  // namespace troupe
