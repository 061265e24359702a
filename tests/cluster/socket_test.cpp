#include "cluster/socket.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/cluster/connect.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using std::chrono::steady_clock;

namespace {

Deadline In(std::chrono::milliseconds duration) { return steady_clock::now() + duration; }

struct Pair {
  Socket listener = Socket::Listen({"127.0.0.1", 0});
  Socket a = testing::Connect(listener.local_address(), In(5s));
  Socket b = testing::Accept(listener, In(5s));
};

int Option(const Socket& socket, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  getsockopt(socket.fd(), level, name, &value, &length);
  return value;
}

}  // namespace

TEST_CASE("addresses are read as they are written") {
  for (const std::string text : {"n0:7420", "127.0.0.1:0", "[::1]:7420", "a.b-c.example:65535"})
    CHECK(ToString(ParseAddress(text)) == text);
  CHECK(ParseAddress("[::1]:7420") == Address{"::1", 7420});
}

TEST_CASE("what is no address is refused with what is expected") {
  for (const std::string text : {"n0", "", ":7420", "n0:", "n0:x", "n0:65536", "n0:-1", "n0: 7",
                                 "::1:7420", "[::1]", "[]:1", "n 0:1", "[::1:7", "n0:7420 "})
    CHECK_THROWS_WITH(ParseAddress(text),
                      Contains("\"" + text + "\": expected HOST:PORT, such as n0:7420"));
}

TEST_CASE("what one side writes the other reads, in one piece and in many") {
  Pair pair;
  REQUIRE(pair.b);
  std::vector<std::byte> sent(3'000'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 >> 3);
  std::thread writer([&] { pair.a.Write(sent, In(10s)); });
  std::vector<std::byte> received(sent.size());
  pair.b.Read(std::span(received).first(1), In(10s));
  pair.b.Read(std::span(received).subspan(1), In(10s));
  writer.join();
  CHECK(received == sent);
  CHECK(pair.a.local_address() == pair.b.peer_address());
  CHECK(pair.b.local_address() == pair.listener.local_address());
}

TEST_CASE("a socket does not wait to fill packets, does not block and is closed on exec") {
  const Pair pair;
  for (const Socket* socket : {&pair.a, &pair.b}) {
    CHECK(Option(*socket, IPPROTO_TCP, TCP_NODELAY) == 1);
    CHECK((fcntl(socket->fd(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(socket->fd(), F_GETFL) & O_NONBLOCK) != 0);
  }
  CHECK(Option(pair.listener, SOL_SOCKET, SO_REUSEADDR) == 1);
  CHECK((fcntl(pair.listener.fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a listener listens on its address only") {
  const Socket listener = Socket::Listen({"127.0.0.1", 0});
  CHECK(listener.local_address().host == "127.0.0.1");
  const Address elsewhere{"127.0.0.2", listener.local_address().port};
  try {
    testing::Connect(elsewhere, In(1ms));
    FAIL("connected");
  } catch (const SocketError& error) {
    CHECK(error.code == ECONNREFUSED);
  }
  const Socket everywhere = Socket::Listen({"0.0.0.0", 0});
  CHECK(testing::Connect({"127.0.0.2", everywhere.local_address().port}, In(5s)));
  CHECK(Socket::Listen({"localhost", 0}).local_address().host != "0.0.0.0");
}

TEST_CASE("a taken port is named") {
  const Socket listener = Socket::Listen({"127.0.0.1", 0});
  const Address address = listener.local_address();
  CHECK_THROWS_WITH(Socket::Listen(address),
                    "cannot listen on " + ToString(address) + ": address already in use");
  // An address for documentation: no machine has it.
  CHECK_THROWS_WITH(Socket::Listen({"192.0.2.1", 0}), Contains("cannot listen on 192.0.2.1:0: "));
}

TEST_CASE("nothing waits longer than its deadline") {
  Pair pair;
  std::array<std::byte, 4> bytes{};
  const auto began = steady_clock::now();
  CHECK_FALSE(pair.listener.TryAccept());
  CHECK_THROWS_WITH(pair.a.Read(bytes, In(20ms)),
                    Contains("cannot read 4 bytes from 127.0.0.1:") && Contains("timed out"));
  const std::vector<std::byte> much(64 << 20);
  CHECK_THROWS_WITH(pair.a.Write(much, In(50ms)),
                    Contains("cannot write") && Contains("timed out"));
  CHECK(steady_clock::now() - began < 5s);
}

TEST_CASE("a closed connection is an error that says so") {
  Pair pair;
  pair.b = Socket();
  std::array<std::byte, 4> bytes{};
  CHECK_THROWS_WITH(pair.a.Read(bytes, In(5s)), Contains("closed the connection"));
  CHECK(pair.a.closed_by_peer());
}

TEST_CASE("a moved socket is empty, and the target's own is closed") {
  Pair pair;
  const int fd = pair.a.fd();
  Socket other = std::move(pair.a);
  CHECK_FALSE(pair.a);
  CHECK(other.fd() == fd);
  other = Socket();
  CHECK(fcntl(fd, F_GETFD) == -1);
  Pair second;
  const int released = second.a.Release();
  CHECK_FALSE(second.a);
  const Socket owner(released);
  CHECK(fcntl(released, F_GETFD) != -1);
}
