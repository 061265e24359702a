// Join over TLS.
#include <array>
#include <future>
#include <linux/filter.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

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
using testing::CheckMesh;
using testing::Meeting;
using testing::Outcome;

namespace {

Deadline Soon() { return steady_clock::now() + 10s; }

std::function<void(JoinOptions&)> With(const TlsContext& context) {
  return [&context](JoinOptions& options) { options.tls = &context; };
}

/// Two processes that have met over TLS: what each has of the other.
struct SecuredPair {
  explicit SecuredPair(const Authority& authority)
      : near_context(authority.Issue("n0")), far_context(authority.Issue("n1")) {
    meeting.Start(0, With(near_context));
    meeting.Start(1, With(far_context));
    auto& outcomes = meeting.Finish();
    REQUIRE(outcomes[0].error == "");
    REQUIRE(outcomes[1].error == "");
    near = std::move(outcomes[0].joined->peers[0]);
    far = std::move(outcomes[1].joined->peers[0]);
  }
  TlsContext near_context;
  TlsContext far_context;
  Meeting meeting{2};
  Peer near;
  Peer far;
};

/// The first process's watch over the second.
class LossWatch {
 public:
  explicit LossWatch(Peer& peer) : watch_(Only(peer), {20ms, 80ms, 300ms}, {}, Events()) {}

  /// How the second was lost, and the line about it.
  std::pair<Loss, std::string> Await() {
    auto told = lost_.get_future();
    REQUIRE(told.wait_for(10s) == std::future_status::ready);
    return told.get();
  }

 private:
  static std::vector<WatchedPeer> Only(Peer& peer) {
    std::vector<WatchedPeer> peers;
    peers.push_back({1, "n1", std::move(peer.heartbeat), std::move(peer.heartbeat_wire)});
    return peers;
  }
  WatchEvents Events() {
    WatchEvents events;
    events.lost = [this](ProcessId, Loss loss, const std::string& line) {
      lost_.set_value({loss, line});
    };
    return events;
  }

  std::promise<std::pair<Loss, std::string>> lost_;
  Watch watch_;
};

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
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.error == "");
    // Addresses are those of TCP, not of the pair of sockets above it.
    for (const Hello& member : outcome.joined->roster.members)
      CHECK(member.address.host == "127.0.0.1");
    for (const Peer& peer : outcome.joined->peers)
      CHECK(peer.heartbeat_wire.peer_address().host == "127.0.0.1");
  }
  CheckMesh(outcomes);
}

TEST_CASE("one with TLS and one without do not meet, and both report it") {
  const Authority authority("ca");
  const TlsContext context(authority.Issue("n"));
  for (const bool first_wants : {true, false}) {
    Meeting meeting(2);
    const auto tls = With(context);
    meeting.Start(0, first_wants ? tls : nullptr);
    meeting.Start(1, first_wants ? nullptr : tls);
    for (const Outcome& outcome : meeting.Finish())
      CHECK(outcome.error == (first_wants ? "n0 wants TLS, n1 does not: set cluster.tls alike"
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

TEST_CASE("over TLS a silent process is stopped while its host acknowledges, killed when gone") {
  const Authority authority("ca");
  for (const bool gone : {false, true}) {
    SecuredPair pair(authority);
    LossWatch watch(pair.near);
    if (gone) pair.far.heartbeat = Socket();
    const auto [loss, line] = watch.Await();
    CHECK(loss == (gone ? Loss::kKilled : Loss::kStopped));
    CHECK_THAT(line, Contains(gone ? "n1: its process ended without" : "n1: it is stopped"));
  }
}

TEST_CASE("over TLS a host that acknowledges nothing has vanished, as its TCP socket tells") {
  const Authority authority("ca");
  SecuredPair pair(authority);
  const int far = pair.far.heartbeat_wire.fd();
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
  LossWatch watch(pair.near);
  CHECK(watch.Await().first == Loss::kVanished);
}
