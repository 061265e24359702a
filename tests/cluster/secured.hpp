// Two ends of one connection that TLS secures, as threads of a test.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <poll.h>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "cluster/poll_set.hpp"
#include "cluster/tls.hpp"
#include "tests/cluster/certificates.hpp"
#include "tests/cluster/connect.hpp"

namespace troupe::testing {

/// For what a test waits for that is not itself under test.
inline Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

struct Wire {
  Socket listener = Socket::Listen({"127.0.0.1", 0});
  Socket near = Connect(listener.local_address(), Soon());
  Socket far = Accept(listener, Soon());
};

/// The whole handshake, within the time; the calling thread waits. Throws std::runtime_error
/// with the handshake's problem().
inline Socket SecureSocket(const TlsContext& context, Socket plain, bool initiator,
                           const std::string& peer, std::chrono::milliseconds time) {
  static const RunKey session = RunKey::Generate();
  TlsHandshake handshake(context, {std::move(plain), session},
                         initiator ? Side::kInitiator : Side::kAcceptor, peer, time);
  PollSet polls;
  while (handshake.Advance(std::chrono::steady_clock::now()) == TlsHandshake::Status::kRunning) {
    polls.Clear();
    polls.Add(handshake.fd(), handshake.events());
    polls.Wait(handshake.until());
  }
  if (!handshake.problem().empty()) throw std::runtime_error(handshake.problem());
  return handshake.Take().socket;
}

/// How one side's handshake ended.
struct SecuredEnd {
  Socket socket;
  std::string error;
};

inline SecuredEnd Secure(const TlsContext& context, Socket plain, bool initiator,
                         std::chrono::milliseconds time = kHandshakeTime) {
  SecuredEnd end;
  try {
    end.socket = SecureSocket(context, std::move(plain), initiator, initiator ? "n0" : "n2", time);
  } catch (const std::runtime_error& error) {
    end.error = error.what();
  }
  return end;
}

/// Both sides at once: [0] connected, [1] accepted.
inline std::array<SecuredEnd, 2> SecureBoth(const TlsContext& near, const TlsContext& far,
                                            Wire wire = {}) {
  auto accepted =
      std::async(std::launch::async, [&] { return Secure(far, std::move(wire.far), false); });
  SecuredEnd connected = Secure(near, std::move(wire.near), true);
  return {std::move(connected), accepted.get()};
}

/// Two processes of one authority, and one connection between them.
struct Secured {
  explicit Secured(const Authority& authority)
      : near_context(authority.Issue("n2")), far_context(authority.Issue("n0")) {
    auto both = SecureBoth(near_context, far_context);
    REQUIRE(both[0].error == "");
    REQUIRE(both[1].error == "");
    near = std::move(both[0].socket);
    far = std::move(both[1].socket);
  }
  TlsContext near_context;
  TlsContext far_context;
  Socket near;
  Socket far;
};

inline std::vector<std::byte> RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

/// Until `socket` ends: all that came.
inline std::vector<std::byte> ReadToEnd(Socket& socket) {
  std::vector<std::byte> all;
  std::array<std::byte, 65536> bytes;
  const Deadline deadline = Soon();
  while (std::chrono::steady_clock::now() < deadline) {
    const auto n = socket.TryRead(bytes);
    if (n == 0) return all;
    if (n) all.insert(all.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*n));
    pollfd entry{socket.fd(), POLLIN, 0};
    if (!n) poll(&entry, 1, 1000);
  }
  throw std::runtime_error("it did not end");
}

}  // namespace troupe::testing
