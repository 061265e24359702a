// Join over TLS.
#include <array>
#include <future>
#include <linux/filter.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

#include <catch2/catch.hpp>

#include "cluster/join.hpp"
#include "cluster/tls.hpp"
#include "cluster/watch.hpp"
#include "tests/cluster/certificates.hpp"
#include "tests/cluster/meeting.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using std::chrono::steady_clock;
using testing::Authority;
using testing::Meeting;
using testing::Outcome;

namespace {

Deadline Soon() { return steady_clock::now() + 10s; }

std::function<void(JoinOptions&)> With(const TlsContext& context) {
  return [&context](JoinOptions& options) { options.tls = &context; };
}

}  // namespace

TEST_CASE("three processes meet over TLS, and every connection is secured and works") {
  const Authority authority("ca");
  std::array<std::unique_ptr<TlsContext>, 3> contexts;
  for (std::size_t i = 0; i < 3; ++i)
    contexts[i] = std::make_unique<TlsContext>(authority.Issue("n" + std::to_string(i)));
  Meeting meeting(3);
  for (const ProcessId process : {0, 1, 2})
    meeting.Start(process, With(*contexts[static_cast<std::size_t>(process)]));
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  for (Outcome& outcome : outcomes) {
    // Addresses are those of TCP, not of the pair of sockets above it.
    for (const Hello& member : outcome.joined->roster.members)
      CHECK(member.address.host == "127.0.0.1");
    for (Peer& peer : outcome.joined->peers) {
      CHECK(peer.heartbeat_wire.peer_address().host == "127.0.0.1");
      for (Socket* socket : {&peer.control, &peer.heartbeat}) {
        const std::array<std::byte, 2> hello{static_cast<std::byte>(&outcome - outcomes.data()),
                                             static_cast<std::byte>(socket == &peer.control)};
        socket->Write(hello, Soon());
      }
    }
  }
  for (Outcome& outcome : outcomes)
    for (Peer& peer : outcome.joined->peers)
      for (Socket* socket : {&peer.control, &peer.heartbeat}) {
        std::array<std::byte, 2> hello{};
        socket->Read(hello, Soon());
        CHECK(std::to_integer<int>(hello[0]) == peer.process);
        CHECK(std::to_integer<int>(hello[1]) == (socket == &peer.control ? 1 : 0));
      }
}

TEST_CASE("one with TLS and one without do not meet, and both are told") {
  const Authority authority("ca");
  const TlsContext context(authority.Issue("n"));
  for (const bool first_wants : {true, false}) {
    Meeting meeting(2);
    const auto tls = With(context);
    meeting.Start(0, first_wants ? tls : nullptr);
    meeting.Start(1, first_wants ? nullptr : tls);
    for (const Outcome& outcome : meeting.Finish())
      CHECK(outcome.error ==
            (first_wants ? "n0 wants TLS, n1 does not: set cluster.tls alike"
                         : "n1 wants TLS, n0 does not: set cluster.tls alike"));
  }
}

TEST_CASE("a member with a certificate of another authority ends the meeting, by its name") {
  const Authority ours("ca");
  const Authority theirs("other_ca");
  const TlsContext first(ours.Issue("n0"));
  const TlsContext other(theirs.Issue("n1"));
  Meeting meeting(3);
  meeting.Start(0, With(first));
  meeting.Start(1, With(other));
  meeting.Start(2, With(first));
  const auto& outcomes = meeting.Finish();
  const std::string refused =
      "n1 (127.0.0.1): TLS handshake failed: it does not accept this process's certificate: not "
      "signed by its CA";
  CHECK(outcomes[0].error == refused);
  CHECK(outcomes[1].error ==
        "n0 (127.0.0.1): TLS handshake failed: its certificate is not signed by CA " +
            theirs.file());
  CHECK(outcomes[2].error == refused);
}

TEST_CASE("over TLS a silent process is stopped while its host acknowledges, and killed when gone") {
  const Authority authority("ca");
  const TlsContext near_context(authority.Issue("n0"));
  const TlsContext far_context(authority.Issue("n1"));
  for (const bool gone : {false, true}) {
    Meeting meeting(2);
    meeting.Start(0, With(near_context));
    meeting.Start(1, With(far_context));
    auto& outcomes = meeting.Finish();
    REQUIRE(outcomes[0].error == "");
    REQUIRE(outcomes[1].error == "");
    Peer& near = outcomes[0].joined->peers[0];
    Peer& far = outcomes[1].joined->peers[0];
    std::promise<std::pair<Loss, std::string>> lost;
    WatchEvents events;
    events.lost = [&](ProcessId, Loss loss, const std::string& line) {
      lost.set_value({loss, line});
    };
    std::vector<WatchedPeer> peers;
    peers.push_back({1, "n1", std::move(near.heartbeat), std::move(near.heartbeat_wire)});
    const Watch watch(std::move(peers), {20ms, 80ms, 300ms}, {}, events);
    if (gone) far.heartbeat = Socket();
    auto told = lost.get_future();
    REQUIRE(told.wait_for(10s) == std::future_status::ready);
    const auto [loss, line] = told.get();
    CHECK(loss == (gone ? Loss::kKilled : Loss::kStopped));
    CHECK_THAT(line, Contains(gone ? "n1 ended without a goodbye" : "n1 is stopped: its host"));
  }
}

TEST_CASE("over TLS a host that acknowledges nothing has vanished, as its TCP socket tells") {
  const Authority authority("ca");
  const TlsContext near_context(authority.Issue("n0"));
  const TlsContext far_context(authority.Issue("n1"));
  Meeting meeting(2);
  meeting.Start(0, With(near_context));
  meeting.Start(1, With(far_context));
  auto& outcomes = meeting.Finish();
  REQUIRE(outcomes[0].error == "");
  REQUIRE(outcomes[1].error == "");
  Peer& near = outcomes[0].joined->peers[0];
  const int far = outcomes[1].joined->peers[0].heartbeat_wire.fd();
  // What is still unacknowledged would be sent again, and be taken for a sign of life.
  const auto unacknowledged = [far] {
    tcp_info info{};
    socklen_t length = sizeof info;
    REQUIRE(getsockopt(far, IPPROTO_TCP, TCP_INFO, &info, &length) == 0);
    return info.tcpi_unacked > 0;
  };
  const Deadline deadline = Soon();
  while (unacknowledged() && steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  // From now on the far kernel drops what comes, unacknowledged.
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  REQUIRE(setsockopt(far, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
  std::promise<Loss> lost;
  WatchEvents events;
  events.lost = [&](ProcessId, Loss loss, const std::string&) { lost.set_value(loss); };
  std::vector<WatchedPeer> peers;
  peers.push_back({1, "n1", std::move(near.heartbeat), std::move(near.heartbeat_wire)});
  const Watch watch(std::move(peers), {20ms, 80ms, 300ms}, {}, events);
  auto told = lost.get_future();
  REQUIRE(told.wait_for(10s) == std::future_status::ready);
  CHECK(told.get() == Loss::kVanished);
}
