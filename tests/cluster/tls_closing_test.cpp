// How TLS connections end: after everything that was written, from either side.
#include <array>
#include <memory>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "cluster/tls.hpp"
#include "tests/cluster/secured.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// Until writing fails, as it does once the other side is gone.
bool WritingFails(Socket& socket) {
  const std::array<std::byte, 1> byte{};
  const Deadline deadline = Soon();
  try {
    while (steady_clock::now() < deadline) {
      socket.Write(byte, deadline);
      std::this_thread::sleep_for(1ms);
    }
  } catch (const SocketError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("closing passes through in both directions, after everything that was written") {
  const Authority authority("ca");
  for (const bool near_closes : {true, false}) {
    Secured secured(authority);
    Socket& closes = near_closes ? secured.near : secured.far;
    Socket& stays = near_closes ? secured.far : secured.near;
    const auto bytes = RandomBytes(100'000, 3);
    closes.Write(bytes, Soon());
    closes = Socket();
    CHECK(ReadToEnd(stays) == bytes);
    CHECK(WritingFails(stays));
  }
}

TEST_CASE("a half-closed connection still carries the other direction") {
  const Authority authority("ca");
  Secured secured(authority);
  const auto bytes = RandomBytes(100'000, 3);
  secured.near.Write(bytes, Soon());
  secured.near.FinishWriting();
  CHECK(ReadToEnd(secured.far) == bytes);
  secured.far.Write(bytes, Soon());
  secured.far.FinishWriting();
  CHECK(ReadToEnd(secured.near) == bytes);
}

TEST_CASE("a TCP connection that ends without a goodbye ends the secured one") {
  const Authority authority("ca");
  for (const bool reset : {false, true}) {
    const TlsContext near(authority.Issue("n2"));
    const TlsContext far(authority.Issue("n0"));
    Wire wire;
    const Socket below = wire.near.Duplicate();
    auto [connected, other] = SecureBoth(near, far, std::move(wire));
    REQUIRE(other.error == "");
    const auto bytes = RandomBytes(100, 3);
    connected.socket.Write(bytes, Soon());
    std::array<std::byte, 100> got{};
    other.socket.Read(got, Soon());
    if (reset) {
      // Nonsense that bypasses OpenSSL, as an attacker on the network might send it.
      REQUIRE(send(below.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == 100);
    } else {
      shutdown(below.fd(), SHUT_RDWR);
    }
    CHECK(ReadToEnd(other.socket).empty());
    CHECK(WritingFails(other.socket));
    CHECK(ReadToEnd(connected.socket).empty());
  }
}

TEST_CASE("what was written is with the kernel after Flush, and when the context goes") {
  const Authority authority("ca");
  const TlsContext far(authority.Issue("n0"));
  const auto bytes = RandomBytes(60'000, 4);
  for (const bool flush : {true, false}) {
    auto near = std::make_unique<TlsContext>(authority.Issue("n2"));
    Wire wire;
    const Socket below = wire.far.Duplicate();
    auto [connected, other] = SecureBoth(*near, far, std::move(wire));
    REQUIRE(connected.error == "");
    connected.socket.Write(bytes, Soon());
    if (flush) {
      near->Flush(Soon());
      std::vector<std::byte> got(bytes.size());
      other.socket.Read(got, Soon());
      CHECK(got == bytes);
    } else {
      near.reset();
      CHECK(ReadToEnd(other.socket) == bytes);
      CHECK(ReadToEnd(connected.socket).empty());
    }
  }
}
