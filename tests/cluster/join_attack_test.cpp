// Strangers against a job that is meeting.
#include <array>
#include <atomic>
#include <poll.h>
#include <random>
#include <thread>

#include <catch2/catch.hpp>

#include "cluster/acceptor.hpp"
#include "cluster/descriptors.hpp"
#include "cluster/handshake.hpp"
#include "cluster/join.hpp"
#include "tests/cluster/connect.hpp"
#include "tests/cluster/crowd.hpp"
#include "tests/cluster/meeting.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::Meeting;
using testing::Outcome;

namespace {

Deadline Soon() { return steady_clock::now() + 10s; }

/// Until the other side closes: how long that takes.
std::chrono::milliseconds TimeToClose(Socket& socket, steady_clock::time_point since) {
  std::array<std::byte, 256> ignored;
  const Deadline deadline = Soon();
  try {
    while (steady_clock::now() < deadline) {
      const auto n = socket.TryRead(ignored);
      if (n == 0) break;
      pollfd entry{socket.fd(), POLLIN, 0};
      if (!n) poll(&entry, 1, 20);
    }
  } catch (const SocketError&) {
    // Reset: closed as well.
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - since);
}

/// Connects, behaves as requested, and returns how long it was tolerated.
std::chrono::milliseconds Stranger(const Address& address,
                                   const std::function<void(Socket&)>& behave) {
  Socket socket = testing::Connect(address, Soon());
  const auto began = steady_clock::now();
  try {
    behave(socket);
  } catch (const SocketError&) {
    // Closed while it still spoke.
  }
  return TimeToClose(socket, began);
}

/// What a member says and hears in a genuine handshake with process 0.
std::vector<std::byte> Eavesdrop(const Meeting& meeting) {
  Opening opening;
  opening.from = 1;
  FillRandom(opening.nonce);
  Handshake handshake = Handshake::Initiate(meeting.key().Derive("join"), opening);
  Socket socket = testing::Connect(meeting.seed(), Soon());
  std::vector<std::byte> said;
  while (handshake.status() == Handshake::Status::kRunning) {
    const auto output = handshake.TakeOutput();
    said.insert(said.end(), output.begin(), output.end());
    socket.Write(output, Soon());
    std::vector<std::byte> bytes(handshake.wanted());
    socket.Read(bytes, Soon());
    handshake.Receive(bytes);
  }
  REQUIRE(handshake.status() == Handshake::Status::kProven);
  return said;
}

std::vector<std::byte> RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// The bound, and what a busy machine adds.
constexpr auto kTolerated = kHandshakeTime + 1500ms;

}  // namespace

TEST_CASE("strangers of every kind are closed within two seconds, and the job meets") {
  Meeting meeting(3);
  meeting.Start(0);
  const auto recorded = Eavesdrop(meeting);
  const Address address = meeting.seed();
  std::array<std::chrono::milliseconds, 6> times{};
  std::vector<std::thread> strangers;
  const auto attack = [&](std::size_t place, std::function<void(Socket&)> behave) {
    strangers.emplace_back([&times, address, place, behave = std::move(behave)] {
      times[place] = Stranger(address, behave);
    });
  };
  attack(0, [](Socket& socket) { socket.Write(RandomBytes(5000, 1), Soon()); });
  attack(1, [](Socket&) {});
  attack(2, [](Socket& socket) {
    // The right beginning, a byte at a time: never silent for long.
    for (const std::byte b : EncodeOpening(Opening())) {
      socket.Write({&b, 1}, Soon());
      std::this_thread::sleep_for(100ms);
    }
  });
  attack(3, [](Socket& socket) {
    // What would be a length where one is expected later.
    auto bytes = EncodeOpening(Opening());
    bytes.resize(bytes.size() + 64, std::byte{0xff});
    socket.Write(bytes, Soon());
  });
  attack(4, [&](Socket& socket) { socket.Write(recorded, Soon()); });
  attack(5, [](Socket& socket) {
    socket.Write(EncodeOpening(Opening()), Soon());
    std::array<std::byte, Opening::kBytes> answer{};
    socket.Read(answer, Soon());
    socket.Write(answer, Soon());
  });
  meeting.Start(1);
  // The job must still be meeting while they are there.
  for (std::thread& stranger : strangers) stranger.join();
  meeting.Start(2);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
  for (const auto time : times) CHECK(time < kTolerated);
  CHECK(times[0] < 1s);
  CHECK(times[3] < 1s);
  CHECK(times[4] < 1s);
  CHECK(times[5] < 1s);
  CHECK(times[1] > 1s);
}

TEST_CASE("two hundred connections at once do not keep members out") {
  Meeting meeting(3);
  meeting.Start(0);
  std::vector<Socket> silent;
  const auto began = steady_clock::now();
  for (int i = 0; i < 200; ++i) silent.push_back(testing::Connect(meeting.seed(), Soon()));
  meeting.Start(1);
  meeting.Start(2);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
  CHECK(steady_clock::now() - began < 8s);
  for (Socket& socket : silent) CHECK(TimeToClose(socket, steady_clock::now()) < kTolerated);
  // A few lines, not two hundred.
  CHECK(meeting.said().size() < 12);
}

TEST_CASE("members get in while strangers hammer without pause") {
  Meeting meeting(3);
  meeting.Start(0);
  std::atomic<bool> over{false};
  std::vector<std::thread> strangers;
  for (int i = 0; i < 3; ++i)
    strangers.emplace_back([&, seed = static_cast<unsigned>(i)] {
      while (!over) try {
          Socket socket = testing::Connect(meeting.seed(), steady_clock::now() + 100ms);
          socket.Write(seed == 0 ? EncodeOpening(Opening()) : RandomBytes(40, seed), Soon());
        } catch (const SocketError&) {
          // Refused, reset or gone: as it likes.
        }
    });
  meeting.Start(1);
  meeting.Start(2);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
  over = true;
  for (std::thread& stranger : strangers) stranger.join();
}

TEST_CASE("a thousand connections that reopen delay a meeting by two seconds at most") {
  RaiseDescriptorLimit();
  if (DescriptorLimit() < DescriptorsFor(3 * kPromisedPlaces, 3)) {
    WARN("not enough descriptors: " << DescriptorLimit());
    return;
  }
  const std::vector<std::byte> opening = EncodeOpening(Opening());
  const std::vector<std::function<void(Socket&)>> kinds = {
      {},                                                      // silent
      [&](Socket& socket) { socket.Write(opening, Soon()); },  // knows how it begins
      [&](Socket& socket) { socket.Write(RandomBytes(96, 1), Soon()); },
  };
  for (const auto& kind : kinds) {
    Meeting meeting(3);
    meeting.Start(0);
    const testing::Crowd crowd(meeting.seed(), 1000, kind);
    // Until places have been taken and lost.
    std::this_thread::sleep_for(500ms);
    const auto began = steady_clock::now();
    meeting.Start(1);
    meeting.Start(2);
    for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
    CHECK(steady_clock::now() - began < 2s);
  }
}

TEST_CASE("a member that gets no answer among silent strangers says so, and nothing of its key") {
  // The kernel accepts here, and no process reads: as where too many are before the member.
  const Socket busy = Socket::Listen({"127.0.0.1", 0});
  const testing::Crowd crowd(busy.local_address(), 50);
  Meeting meeting(2, 3s);
  meeting.Start(1, [&](JoinOptions& options) { options.seed = busy.local_address(); });
  CHECK(meeting.Finish()[0].error ==
        "cannot reach " + ToString(busy.local_address()) +
            " within 3 s: it accepts connections, but does not answer (is process 0 running, is "
            "the address right?)");
}

TEST_CASE("a process with few places meets, if later, and says how many it has") {
  Meeting meeting(2);
  const auto few = [](JoinOptions& options) { options.descriptors = 64; };
  meeting.Start(0, few);
  const testing::Crowd crowd(meeting.seed(), 300);
  meeting.Start(1);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
  CHECK(meeting.said()[0] ==
        "n0: n0: the limit of open files (ulimit -n), 64, leaves room for 16 unauthenticated "
        "connections at a time: more of them can delay the meeting; raise it to 1560");
}

TEST_CASE("the first refusal is said at once, all of them at the end") {
  RefusalLog log;
  CHECK_FALSE(log.Total());
  CHECK(log.Note("10.0.0.9") ==
        "refused a connection from 10.0.0.9: it could not prove the run key (further ones are only "
        "counted)");
  CHECK_FALSE(log.Total());
  for (int i = 0; i < 50; ++i) CHECK_FALSE(log.Note("10.0.0.8"));
  CHECK(log.Total() ==
        "refused 51 connections that could not prove the run key, the last from 10.0.0.8");
  CHECK_FALSE(log.Total());
  CHECK(log.count() == 51);
}
