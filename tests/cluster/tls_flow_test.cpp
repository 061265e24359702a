// What goes through TLS connections: all of it, at once, and past those that are stuck.
#include <algorithm>
#include <array>
#include <future>
#include <poll.h>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "cluster/poll_set.hpp"
#include "cluster/tls.hpp"
#include "tests/cluster/secured.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// Writes and reads at once, as much as `sent` each way: what came.
std::vector<std::byte> Exchange(Socket& socket, std::span<const std::byte> sent,
                                std::size_t expected) {
  std::vector<std::byte> got(expected);
  std::size_t num_got = 0;
  const Deadline deadline = Soon();
  PollSet polls;
  while (!sent.empty() || num_got < expected) {
    polls.Clear();
    polls.Add(socket.fd(), static_cast<short>(sent.empty() ? POLLIN : POLLIN | POLLOUT));
    polls.Wait(deadline);
    if (steady_clock::now() > deadline) throw std::runtime_error("not all came");
    sent = sent.subspan(
        sent.empty() ? 0
                     : socket.TryWrite(sent.first(std::min<std::size_t>(sent.size(), 100'000))));
    if (num_got == expected) continue;
    const auto n = socket.TryRead(std::span(got).subspan(num_got));
    if (n == 0) throw std::runtime_error("it closed the connection");
    num_got += n.value_or(0);
  }
  return got;
}

}  // namespace

TEST_CASE("64 MiB both ways at once come through whole, in a bounded memory") {
  const Authority authority("ca");
  Secured secured(authority);
  const std::size_t size = std::size_t{64} << 20;
  const auto forth = RandomBytes(size, 1);
  const auto back = RandomBytes(size, 2);
  auto far = std::async(std::launch::async, [&] { return Exchange(secured.far, back, size); });
  const auto got = Exchange(secured.near, forth, size);
  CHECK(got == back);
  CHECK(far.get() == forth);
}

TEST_CASE("who does not read holds the writer up") {
  const Authority authority("ca");
  Secured secured(authority);
  const auto bytes = RandomBytes(std::size_t{1} << 20, 1);
  std::size_t written = 0;
  Deadline stuck_since = steady_clock::now();
  // What the kernel and the relays hold on the way is less than this.
  const std::size_t limit = std::size_t{64} << 20;
  while (written < limit && steady_clock::now() < stuck_since + 300ms) {
    const std::size_t n = secured.near.TryWrite(bytes);
    written += n;
    if (n > 0) stuck_since = steady_clock::now();
  }
  CHECK(written < limit);
  secured.near = Socket();
  CHECK(ReadToEnd(secured.far).size() == written);
}

TEST_CASE("a hundred thousand small messages each way come through, each at once") {
  const Authority authority("ca");
  Secured secured(authority);
  constexpr std::size_t kMessages = 100'000;
  constexpr std::size_t kBytes = 40;
  const auto send_all = [](Socket& socket, unsigned seed) {
    const auto bytes = RandomBytes(kMessages * kBytes, seed);
    for (std::size_t i = 0; i < kMessages; ++i)
      socket.Write(std::span(bytes).subspan(i * kBytes, kBytes), Soon());
  };
  const auto read_all = [](Socket& socket, unsigned seed) {
    std::vector<std::byte> bytes(kMessages * kBytes);
    for (std::size_t i = 0; i < kMessages; ++i)
      socket.Read(std::span(bytes).subspan(i * kBytes, kBytes), Soon());
    return bytes == RandomBytes(kMessages * kBytes, seed);
  };
  std::thread forth([&] { send_all(secured.near, 1); });
  std::thread back([&] { send_all(secured.far, 2); });
  auto far = std::async(std::launch::async, [&] { return read_all(secured.far, 1); });
  CHECK(read_all(secured.near, 2));
  CHECK(far.get());
  forth.join();
  back.join();
}

TEST_CASE("a message is not held back for others to come") {
  const Authority authority("ca");
  Secured secured(authority);
  std::array<std::byte, 8> message{};
  // A delayed acknowledgement, a timer or Nagle's algorithm would cost 40 ms each time.
  const auto began = steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    secured.near.Write(message, Soon());
    secured.far.Read(message, Soon());
    secured.far.Write(message, Soon());
    secured.near.Read(message, Soon());
  }
  const auto per_round = (steady_clock::now() - began) / 200;
  INFO(std::chrono::duration_cast<std::chrono::microseconds>(per_round).count() << " us a round");
  CHECK(per_round < 20ms);
}

TEST_CASE("thirty-two connections share one relay, and one that is stuck holds up no other") {
  const Authority authority("ca");
  const TlsContext near(authority.Issue("n2"));
  const TlsContext far(authority.Issue("n0"));
  std::vector<std::array<SecuredEnd, 2>> connections;
  for (int i = 0; i < 32; ++i) {
    connections.push_back(SecureBoth(near, far));
    REQUIRE(connections.back()[0].error == "");
    REQUIRE(connections.back()[1].error == "");
  }
  // No process reads the first one.
  const auto flood = RandomBytes(std::size_t{1} << 20, 9);
  while (connections[0][0].socket.TryWrite(flood) > 0) continue;
  std::vector<std::future<bool>> done;
  for (std::size_t i = 1; i < connections.size(); ++i)
    for (const std::size_t side : {0U, 1U})
      done.push_back(std::async(std::launch::async, [&, i, side] {
        const auto seed = static_cast<unsigned>(2 * i + side);
        const auto other = static_cast<unsigned>(2 * i + (1 - side));
        const std::size_t size = 300'000 + i;
        return Exchange(connections[i][side].socket, RandomBytes(size, seed), size) ==
               RandomBytes(size, other);
      }));
  for (auto& result : done) CHECK(result.get());
}
