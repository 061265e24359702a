// TCP connections between all processes of a job that lives in one process.
#pragma once

#include <arpa/inet.h>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "transport/tcp/plane.hpp"

namespace troupe::testing {

/// Both ends of a connection over the loopback interface.
inline std::pair<Descriptor, Descriptor> TcpPair() {
  const auto check = [](bool good, const char* call) {
    if (!good) throw std::runtime_error(call);
  };
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  check(::bind(listener.get(), any, size) == 0 && ::listen(listener.get(), 1) == 0 &&
            ::getsockname(listener.get(), any, &size) == 0,
        "listen");
  Descriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(::connect(one.get(), any, size) == 0, "connect");
  Descriptor other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  check(static_cast<bool>(other), "accept");
  return {std::move(one), std::move(other)};
}

inline WireSecret SecretOf(int seed) {
  WireSecret secret{};
  secret.fill(static_cast<std::byte>(seed));
  return secret;
}

class SocketPairs {
 public:
  explicit SocketPairs(int processes) : ends_(static_cast<std::size_t>(processes)) {
    for (int a = 0; a < processes; ++a)
      for (int b = 0; b < a; ++b) {
        auto [one, other] = TcpPair();
        ends_[static_cast<std::size_t>(a)].push_back({b, std::move(one), SecretOf(a * 16 + b)});
        ends_[static_cast<std::size_t>(b)].push_back({a, std::move(other), SecretOf(a * 16 + b)});
      }
  }
  std::vector<TcpConnection> Take(ProcessId process) {
    return std::move(ends_[static_cast<std::size_t>(process)]);
  }

 private:
  std::vector<std::vector<TcpConnection>> ends_;
};

}  // namespace troupe::testing
