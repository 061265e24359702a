#include "cluster/watch.hpp"

#include <atomic>
#include <condition_variable>
#include <future>
#include <linux/filter.h>
#include <mutex>
#include <sys/socket.h>
#include <thread>

#include <catch2/catch.hpp>

#include "cluster/heartbeat.hpp"
#include "tests/cluster/connect.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using std::chrono::steady_clock;

namespace {

const WatchOptions kQuick{20ms, 80ms, 300ms};

// For nothing to be reported: any report would have come by then.
constexpr auto kLongEnough = 400ms;

Deadline Soon() { return steady_clock::now() + 10s; }

/// The reports of a watch, as lines, to be waited for.
class Log {
 public:
  WatchEvents Events() {
    return {[this](ProcessId, const std::string& line) { Add("suspected: " + line); },
            [this](ProcessId, const std::string& line) { Add("recovered: " + line); },
            [this](ProcessId, Loss loss, const std::string& line) {
              static const char* const kNames[] = {
                  "killed: ", "vanished: ", "stopped: ", "unreachable: ", "large packets: "};
              Add(kNames[static_cast<int>(loss)] + line);
            }};
  }
  /// The lines once there are `count`, or after ten seconds.
  std::vector<std::string> Wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, Soon(), [&] { return lines_.size() >= count; });
    return lines_;
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  void Add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

/// Two ends of a TCP connection of this machine.
struct Wire {
  Socket listener = Socket::Listen({"127.0.0.1", 0});
  Socket near = testing::Connect(listener.local_address(), Soon());
  Socket far = testing::Accept(listener, Soon());
};

std::vector<WatchedPeer> Peers(ProcessId process, Socket socket) {
  std::vector<WatchedPeer> peers;
  peers.push_back({process, "n" + std::to_string(process), std::move(socket)});
  return peers;
}

std::unique_ptr<Watch> WatchOne(ProcessId process, Socket socket, Log& log,
                                std::function<Vitals()> vitals = {},
                                const WatchOptions& options = kQuick) {
  return std::make_unique<Watch>(Peers(process, std::move(socket)), options, std::move(vitals),
                                 log.Events());
}

/// From now on the socket's kernel drops what comes for it, unacknowledged: as if it were
/// unplugged.
void Unplug(const Socket& socket) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  REQUIRE(setsockopt(socket.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
}

/// Plays a peer by hand, one heartbeat at a time.
void Beat(Socket& socket, std::uint64_t sequence) {
  Heartbeat beat;
  beat.sequence = sequence;
  beat.sent_ns = 1;
  socket.Write(Encode(beat), Soon());
}

template <typename Condition>
bool Eventually(Condition condition) {
  const Deadline deadline = Soon();
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace

TEST_CASE("two that watch each other hear how far the other is, and nothing is lost") {
  Wire wire;
  Log log;
  std::atomic<std::uint64_t> actions{0};
  const auto near = WatchOne(1, std::move(wire.near), log);
  const auto far = WatchOne(0, std::move(wire.far), log, [&] {
    return Vitals{actions.load(), actions == 7};
  });
  actions = 7;
  CHECK(Eventually([&] { return near->Last(1).vitals.actions == 7 && near->Last(1).vitals.busy; }));
  CHECK(near->Last(1).age < 5s);
  CHECK(far->Last(0).vitals.actions == 0);
  // The same clock on both sides: what is left is how unequal the two ways are.
  CHECK(std::abs(near->Last(1).clock_offset_ns) < 50'000'000);
  CHECK_THROWS_WITH(near->Last(5), "watch: process 5 is not watched");
  std::this_thread::sleep_for(kLongEnough);
  CHECK(log.lines().empty());
}

TEST_CASE("a goodbye is no loss, on neither side") {
  Wire wire;
  Log log;
  auto near = WatchOne(1, std::move(wire.near), log);
  auto far = WatchOne(0, std::move(wire.far), log);
  far.reset();
  std::this_thread::sleep_for(kLongEnough);
  CHECK(log.lines().empty());
  near.reset();
  CHECK(log.lines().empty());
}

TEST_CASE("after Leave no loss is reported") {
  Wire wire;
  Log log;
  auto near = WatchOne(1, std::move(wire.near), log);
  near->Leave();
  wire.far = Socket();
  std::this_thread::sleep_for(kLongEnough);
  near.reset();
  CHECK(log.lines().empty());
}

TEST_CASE("a connection that closes without a goodbye is a killed process") {
  Wire wire;
  Log log;
  const auto near = WatchOne(1, std::move(wire.near), log);
  wire.far = Socket();
  const auto lines = log.Wait(1);
  CHECK(lines == std::vector<std::string>{
                     "killed: n1: its process ended without saying goodbye (killed, crashed or out "
                     "of memory?)"});
}

TEST_CASE("a process that does not speak while its host answers is suspected, then stopped") {
  Wire wire;
  Log log;
  const auto near = WatchOne(1, std::move(wire.near), log);
  const auto lines = log.Wait(2);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "suspected: n1 is silent for 0.1 s: its host answers, the process does not "
        "(stopped, or its machine is overloaded?)");
  CHECK(lines[1] ==
        "stopped: n1: it is stopped: its host answers, but the process has been silent for 0.3 s");
  // When it goes on, it reads that it has been given up.
  Log other;
  const auto far = WatchOne(0, std::move(wire.far), other);
  CHECK(other.Wait(1) ==
        std::vector<std::string>{"killed: n0: it gave up on this process, which did not answer for "
                                 "too long (stopped, cut off?)"});
}

TEST_CASE("a host that acknowledges nothing has vanished") {
  Wire wire;
  Unplug(wire.far);
  Log log;
  const auto near = WatchOne(1, std::move(wire.near), log);
  const auto lines = log.Wait(2);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "suspected: n1 is silent for 0.1 s: its host does not answer (network?)");
  CHECK(lines[1] ==
        "vanished: n1: it vanished: its host has not answered for 0.3 s (host down or network "
        "cut)");
}

TEST_CASE("who loses all others at once says that it is cut off itself") {
  Wire one;
  Wire two;
  Unplug(one.far);
  Unplug(two.far);
  Log log;
  auto peers = Peers(1, std::move(one.near));
  peers.push_back({2, "n2", std::move(two.near)});
  const Watch watch(std::move(peers), kQuick, {}, log.Events());
  const auto lines = log.Wait(4);
  REQUIRE(lines.size() == 4);
  CHECK(lines[2] == "vanished: n1, n2: none of them answers: this node is cut off");
  CHECK_THAT(lines[3], Contains("n2: it vanished"));
}

TEST_CASE("a peer that we do not reach, but that reaches us, is cut off in one direction") {
  // What it sends is not acknowledged either, as far as it can see, so it repeats it.
  Wire wire;
  Unplug(wire.far);
  const WatchOptions options{50ms, 400ms, 2000ms};
  Log log;
  Log other;
  const auto near = WatchOne(1, std::move(wire.near), log, {}, options);
  const auto far = WatchOne(0, std::move(wire.far), other, {}, {50ms, 400ms, 60s});
  CHECK(Eventually([&] {
    const auto lines = log.lines();
    return !lines.empty() &&
           lines.back() ==
               "unreachable: n1: packets come from its host, but ours have not reached it for "
               "2.0 s (network cut in one direction)";
  }));
}

TEST_CASE("several heartbeats that come at once do not hide how long the silence was") {
  Wire wire;
  Log log;
  const auto near = WatchOne(1, std::move(wire.near), log);
  REQUIRE_THAT(log.Wait(1).at(0), Contains("suspected: n1 is silent for 0.1 s"));
  std::vector<std::byte> beats;
  for (std::uint64_t sequence = 0; sequence < 5; ++sequence) {
    Heartbeat beat;
    beat.sequence = sequence;
    const auto bytes = Encode(beat);
    beats.insert(beats.end(), bytes.begin(), bytes.end());
  }
  wire.far.Write(beats, Soon());
  const auto lines = log.Wait(2);
  REQUIRE(lines.size() >= 2);
  CHECK_THAT(lines[1], Contains("recovered: n1 is back after 0.") && !Contains("after 0.0 s"));
}

TEST_CASE("a peer that sends again in time is back, and suspected again the next time") {
  Wire wire;
  Log log;
  const auto near = WatchOne(1, std::move(wire.near), log);
  REQUIRE_THAT(log.Wait(1).at(0), Contains("suspected: n1 is silent for 0.1 s"));
  Beat(wire.far, 0);
  const auto lines = log.Wait(3);
  REQUIRE(lines.size() >= 3);
  CHECK_THAT(lines[1], Contains("recovered: n1 is back after 0."));
  CHECK_THAT(lines[2], Contains("suspected: n1 is silent for 0.1 s"));
}

TEST_CASE("what is no heartbeat, or out of turn, ends the connection") {
  for (const bool out_of_turn : {true, false}) {
    Wire wire;
    Log log;
    const auto near = WatchOne(1, std::move(wire.near), log);
    if (out_of_turn) {
      Beat(wire.far, 1);
    } else {
      wire.far.Write(std::vector<std::byte>(Heartbeat::kBytes, std::byte{'x'}), Soon());
    }
    const auto lines = log.Wait(1);
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Contains("killed: n1: it sent something other than a heartbeat (") &&
                             Contains(out_of_turn ? "expected heartbeat 0, got 1" : "not a"));
  }
}

TEST_CASE("a heartbeat may come in pieces") {
  Wire wire;
  Log log;
  const auto near = WatchOne(1, std::move(wire.near), log);
  Heartbeat beat;
  beat.vitals.actions = 9;
  beat.sent_ns = 1;
  for (const std::byte b : Encode(beat)) wire.far.Write({&b, 1}, Soon());
  CHECK(Eventually([&] { return near->Last(1).vitals.actions == 9; }));
  CHECK(Eventually([&] { return !log.lines().empty(); }));
  CHECK_THAT(log.lines().at(0), Contains("suspected"));
}

TEST_CASE("who was stopped itself does not declare the others dead") {
  Wire wire;
  Log log;
  // Its own thread is held up for longer than the others may be silent.
  std::atomic<bool> hold{false};
  std::atomic<bool> held{false};
  const auto near = WatchOne(1, std::move(wire.near), log, [&] {
    if (hold.exchange(false)) {
      std::this_thread::sleep_for(2 * kQuick.dead_after);
      held = true;
    }
    return Vitals();
  });
  Beat(wire.far, 0);
  REQUIRE(Eventually([&] { return near->Last(1).age < kQuick.suspect_after; }));
  hold = true;
  REQUIRE(Eventually([&] { return held.load(); }));
  // Nothing came while it slept; had it counted that, it would say so at once.
  const auto awake = steady_clock::now();
  const auto lines = log.Wait(2);
  CHECK(steady_clock::now() - awake > kQuick.dead_after / 2);
  REQUIRE(lines.size() >= 2);
  CHECK_THAT(lines[0], Contains("suspected"));
}

TEST_CASE("options that cannot work are refused") {
  const auto make = [](WatchOptions options) { Watch({}, options, {}, {}); };
  CHECK_NOTHROW(make(kQuick));
  CHECK_THROWS_WITH(make({100ms, 50ms, 300ms}), Contains("expected interval < suspect_after"));
  CHECK_THROWS_AS(make({0ms, 50ms, 300ms}), std::invalid_argument);
  CHECK_THROWS_AS(make({20ms, 300ms, 300ms}), std::invalid_argument);
}

TEST_CASE("an event may call Leave") {
  Wire wire;
  Log log;
  std::promise<void> told;
  std::unique_ptr<Watch> near;
  std::mutex mutex;
  WatchEvents events = log.Events();
  events.lost = [&](ProcessId, Loss, const std::string&) {
    const std::lock_guard lock(mutex);
    near->Leave();
    told.set_value();
  };
  {
    const std::lock_guard lock(mutex);
    near = std::make_unique<Watch>(Peers(1, std::move(wire.near)), kQuick,
                                   std::function<Vitals()>(), events);
  }
  wire.far = Socket();
  CHECK(told.get_future().wait_for(10s) == std::future_status::ready);
}
