#include "transport/ucx/port_filter.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "transport/descriptor.hpp"

using namespace troupe;

namespace {

struct Listener {
  explicit Listener(int family) : socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.ss_family = static_cast<sa_family_t>(family);
    size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::bind(socket.get(), any(), size) != 0 || ::listen(socket.get(), 16) != 0 ||
        ::getsockname(socket.get(), any(), &size) != 0)
      throw std::runtime_error("listen");
  }
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&address); }
  Descriptor socket;
  sockaddr_storage address{};
  socklen_t size = 0;
};

/// Whether a connection from 127.0.0.1 + `last` is made within 300 ms.
bool ConnectsFrom(Listener& listener, std::uint32_t last) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + last);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0)
    throw std::runtime_error("bind");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = reinterpret_cast<const sockaddr_in*>(&listener.address)->sin_port;
  ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  pollfd event{socket.get(), POLLOUT, 0};
  return ::poll(&event, 1, 300) == 1 && (event.revents & POLLERR) == 0;
}

}  // namespace

TEST_CASE("a filtered port is silent to all addresses but those that it admits") {
  Listener listener(AF_INET);
  CHECK(ConnectsFrom(listener, 1));
  AdmitOnly(listener.socket.get(), {"fd00::1", "127.0.0.3", "127.0.0.1"});
  CHECK(ConnectsFrom(listener, 0));
  CHECK_FALSE(ConnectsFrom(listener, 1));
  CHECK(ConnectsFrom(listener, 2));
  CHECK_FALSE(ConnectsFrom(listener, 3));
  // For good.
  CHECK_THROWS_WITH(AdmitOnly(listener.socket.get(), {"127.0.0.2"}),
                    Catch::Contains("SO_ATTACH_FILTER"));
  CHECK_FALSE(ConnectsFrom(listener, 1));
}

TEST_CASE("only sockets that have begun to listen since then are filtered") {
  Listener before(AF_INET);
  const auto known = ListeningSockets();
  CHECK(std::count(known.begin(), known.end(), before.socket.get()) == 1);
  Listener since(AF_INET);
  AdmitOnlyBySockets(known, {"127.0.0.1"});
  CHECK(ConnectsFrom(before, 1));
  CHECK(ConnectsFrom(since, 0));
  CHECK_FALSE(ConnectsFrom(since, 1));
}

TEST_CASE("a filter of names is refused") {
  Listener listener(AF_INET);
  CHECK_THROWS_WITH(AdmitOnly(listener.socket.get(), {"n0"}),
                    "port filter: expected a numeric address, got \"n0\"");
}
