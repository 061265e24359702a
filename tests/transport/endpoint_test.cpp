#include "transport/endpoint.hpp"

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/transport/crew.hpp"

using namespace troupe;
using troupe::testing::Watchdog;

namespace {

Buffer Tensor(std::int64_t size, int first) {
  Buffer buffer = Buffer::Allocate({size}, DType::kInt32);
  std::iota(buffer.as<int>(), buffer.as<int>() + size, first);
  return buffer;
}

std::function<void()> Ignore() {
  return [] {};
}

/// Two endpoints, and a log of what was called.
struct Pair {
  explicit Pair(int capacity = 64) : transport(abort, capacity) {}

  void Send(Tag tag, Buffer buffer) {
    a->Send("b", tag, std::move(buffer), [this, tag] { Log("sent " + std::to_string(tag)); });
  }
  void Receive(Tag tag, Buffer destination = Buffer()) {
    b->Receive(
        "a", tag, std::move(destination),
        [this, tag](const Buffer& buffer) {
          last = buffer;
          Log("received " + std::to_string(tag) + ": " + std::to_string(buffer.as<int>()[0]));
        },
        [this](const std::string& error) { Log("failed " + error); });
  }
  void Log(const std::string& line) { log.push_back(line); }
  std::vector<std::string> TakeLog() { return std::exchange(log, {}); }

  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::vector<std::string> log;
  Buffer last;
  LocalTransport transport;
  std::unique_ptr<Endpoint> a = transport.Open("a");
  std::unique_ptr<Endpoint> b = transport.Open("b");
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a buffer arrives as the sender's own memory, whoever comes first") {
  Pair pair;
  Buffer buffer = Tensor(3, 10);
  const std::byte* const data = buffer.data();
  pair.Receive(1);
  CHECK(pair.log.empty());
  pair.Send(1, std::move(buffer));
  CHECK(pair.TakeLog() == Lines{"sent 1", "received 1: 10"});
  CHECK(pair.last.data() == data);
  CHECK(pair.last.use_count() == 1);

  buffer = Tensor(3, 20);
  const std::byte* const other = buffer.data();
  pair.Send(2, std::move(buffer));
  CHECK(pair.TakeLog() == Lines{"sent 2"});
  pair.Receive(2);
  CHECK(pair.TakeLog() == Lines{"received 2: 20"});
  CHECK(pair.last.data() == other);
  CHECK(pair.last.use_count() == 1);
}

TEST_CASE("a destination is filled, and the sender's memory is free when it is told so") {
  Pair pair;
  const Buffer buffer = Tensor(5, 30);
  const Buffer destination = Buffer::Zeros({5}, DType::kInt32);
  pair.Receive(1, destination);
  long holders = 0;
  pair.a->Send("b", 1, buffer, [&] { holders = buffer.use_count(); });
  CHECK(holders == 1);
  CHECK(pair.last.data() == destination.data());
  CHECK(destination.as<int>()[4] == 34);
}

TEST_CASE("a destination of another shape or dtype fails and names both") {
  Pair pair;
  pair.Send(7, Tensor(6, 0));
  pair.Receive(7, Buffer::Zeros({2, 3}, DType::kInt32));
  pair.Receive(8, Buffer::Zeros({6}, DType::kFloat32));
  pair.Send(8, Tensor(6, 0));
  CHECK(pair.TakeLog() ==
        Lines{"sent 7", "failed tag 7 from \"a\" to \"b\": expected int32 [2, 3], got int32 [6]",
              "sent 8", "failed tag 8 from \"a\" to \"b\": expected float32 [6], got int32 [6]"});
}

TEST_CASE("tags match sends with receives, in whatever order the receives come") {
  Pair pair;
  for (const int tag : {1, 2, 3}) pair.Send(static_cast<Tag>(tag), Tensor(1, 100 * tag));
  pair.TakeLog();
  for (const Tag tag : {3, 1, 2}) pair.Receive(tag);
  CHECK(pair.TakeLog() == Lines{"received 3: 300", "received 1: 100", "received 2: 200"});
}

TEST_CASE("the same tag is free again once its tensor is received, and in every other direction") {
  Pair pair;
  pair.Send(1, Tensor(1, 5));
  CHECK_THROWS_WITH(pair.a->Send("b", 1, Tensor(1, 6), Ignore()),
                    "tag 1 from \"a\" to \"b\": a send of this tag is still open");
  pair.b->Send("a", 1, Tensor(1, 7), Ignore());
  pair.a->Send("a", 1, Tensor(1, 8), Ignore());
  pair.Receive(1);
  pair.Receive(1);
  CHECK_THROWS_WITH(pair.Receive(1),
                    "tag 1 from \"a\" to \"b\": a receive of this tag is still open");
  pair.Send(1, Tensor(1, 9));
  CHECK(pair.TakeLog() == Lines{"sent 1", "received 1: 5", "sent 1", "received 1: 9"});
}

TEST_CASE("sends beyond the capacity wait until earlier ones are received") {
  Pair pair(2);
  for (const int tag : {1, 2, 3, 4}) pair.Send(static_cast<Tag>(tag), Tensor(1, tag));
  CHECK(pair.TakeLog() == Lines{"sent 1", "sent 2"});
  pair.Receive(1);
  CHECK(pair.TakeLog() == Lines{"received 1: 1", "sent 3"});
  pair.Receive(4);
  CHECK(pair.TakeLog() == Lines{"sent 4", "received 4: 4"});
  pair.Receive(2);
  pair.Receive(3);
  pair.Send(5, Tensor(1, 5));
  CHECK(pair.TakeLog() == Lines{"received 2: 2", "received 3: 3", "sent 5"});
}

TEST_CASE("a full pair does not hold up another pair") {
  Pair pair(1);
  const auto c = pair.transport.Open("c");
  pair.Send(1, Tensor(1, 1));
  pair.Send(2, Tensor(1, 2));
  int sent = 0;
  c->Send("b", 1, Tensor(1, 3), [&] { ++sent; });
  pair.a->Send("c", 1, Tensor(1, 4), [&] { ++sent; });
  CHECK(sent == 2);
}

TEST_CASE("an abort fails every receive that waits or comes later, with the cause") {
  Pair pair(1);
  pair.Receive(1);
  pair.Receive(2);
  pair.Send(3, Tensor(1, 1));
  Buffer waiting = Tensor(1, 2);
  pair.Send(4, waiting);
  pair.TakeLog();
  pair.abort->Raise("node 2 is gone");
  CHECK(pair.TakeLog() == Lines{"failed node 2 is gone", "failed node 2 is gone"});
  CHECK(waiting.use_count() == 1);
  pair.Receive(3);
  CHECK(pair.TakeLog() == Lines{"failed node 2 is gone"});
  pair.Send(5, waiting);
  CHECK(pair.TakeLog().empty());
  CHECK(waiting.use_count() == 1);
}

TEST_CASE("a transport made after the abort fails its receives, too") {
  const auto abort = std::make_shared<AbortSignal>();
  abort->Raise("too late");
  LocalTransport transport(abort);
  const auto end = transport.Open("a");
  std::string error;
  end->Receive("b", 1, Buffer(), nullptr, [&](const std::string& text) { error = text; });
  CHECK(error == "too late");
}

TEST_CASE("a closing receiver fails its receives and drops what it kept") {
  Pair pair(1);
  pair.Receive(9);
  const Buffer kept = Tensor(1, 1);
  pair.Send(1, kept);
  pair.Send(2, Tensor(1, 2));
  pair.TakeLog();
  pair.b.reset();
  CHECK(pair.TakeLog() ==
        Lines{"failed tag 9 from \"a\" to \"b\": the receiver closed before it came", "sent 2"});
  CHECK(kept.use_count() == 1);
  pair.b = pair.transport.Open("b");
  pair.Receive(2);
  CHECK(pair.TakeLog() == Lines{"received 2: 2"});
}

TEST_CASE("a closing sender drops what waits, and receives of it fail") {
  Pair pair(1);
  pair.Send(1, Tensor(1, 1));
  const Buffer waiting = Tensor(1, 2);
  pair.Send(2, waiting);
  pair.Receive(7);
  pair.TakeLog();
  pair.a.reset();
  CHECK(waiting.use_count() == 1);
  pair.Receive(1);
  pair.Receive(2);
  CHECK(pair.TakeLog() ==
        Lines{"failed tag 7 from \"a\" to \"b\": the sender closed before it sent", "received 1: 1",
              "failed tag 2 from \"a\" to \"b\": the sender closed before it sent"});
  pair.a = pair.transport.Open("a");
  pair.Receive(2);
  pair.Send(2, Tensor(1, 22));
  CHECK(pair.TakeLog() == Lines{"sent 2", "received 2: 22"});
}

TEST_CASE("a name is open once at a time, and a transport keeps at least one send") {
  Pair pair;
  CHECK_THROWS_WITH(pair.transport.Open("a"),
                    "endpoint \"a\": expected a name that is not open yet");
  pair.a.reset();
  CHECK(pair.transport.Open("a") != nullptr);
  CHECK_THROWS_WITH(LocalTransport(nullptr, 0),
                    "local transport: expected a capacity of at least 1, got 0");
  CHECK_THROWS_WITH(pair.b->Send("a", 1, Buffer(), Ignore()),
                    "tag 1 from \"b\" to \"a\": expected a tensor to send, got none");
}

TEST_CASE("a peer may be opened after the first send and receive that name it") {
  LocalTransport transport(nullptr);
  const auto a = transport.Open("a");
  int sent = 0;
  int received = 0;
  a->Send("late", 1, Tensor(1, 4), [&] { ++sent; });
  a->Receive(
      "late", 1, Buffer(), [&](const Buffer&) { ++received; }, nullptr);
  CHECK(sent == 1);
  const auto late = transport.Open("late");
  late->Receive(
      "a", 1, Buffer(), [&](const Buffer& b) { received += b.as<int>()[0]; }, nullptr);
  late->Send("a", 1, Tensor(1, 0), Ignore());
  CHECK(received == 5);
}

TEST_CASE("callbacks may send, receive and close without a deadlock or a growing stack") {
  LocalTransport transport(nullptr);
  auto a = transport.Open("a");
  const auto b = transport.Open("b");
  int hops = 0;
  std::function<void(Buffer)> echo = [&](Buffer buffer) {
    if (++hops == 100000) return a.reset();
    b->Receive("a", 1, Buffer(), echo, [](const std::string&) {});
    a->Send("b", 1, std::move(buffer), Ignore());
  };
  b->Receive("a", 1, Buffer(), echo, [](const std::string&) {});
  a->Send("b", 1, Tensor(1, 1), Ignore());
  CHECK(hops == 100000);
}

TEST_CASE("threads on both ends see every tensor once, in the order sent, never overlapping") {
  constexpr int kSends = 3000;
  const auto abort = std::make_shared<AbortSignal>();
  const Watchdog watchdog(abort);
  LocalTransport transport(abort, 4);
  const auto a = transport.Open("a");
  const auto b = transport.Open("b");
  std::atomic<int> running = 0;
  std::atomic<int> finished = 0;
  std::atomic<bool> overlapped = false;
  std::vector<int> sent;
  std::vector<int> received;
  const auto guarded = [&](const std::function<void()>& body) {
    if (++running > 1) overlapped = true;
    body();
    --running;
    ++finished;
  };
  std::thread receiver([&] {
    for (int i = 0; i < kSends; ++i) {
      const Buffer destination = i % 2 == 0 ? Buffer() : Buffer::Zeros({257}, DType::kInt32);
      b->Receive(
          "a", static_cast<Tag>(i), destination,
          [&](const Buffer& buffer) {
            guarded([&] { received.push_back(buffer.as<int>()[256] - 256); });
          },
          [&](const std::string&) { ++finished; });
    }
  });
  for (int i = 0; i < kSends; ++i)
    a->Send("b", static_cast<Tag>(i), Tensor(257, i),
            [&, i] { guarded([&] { sent.push_back(i); }); });
  receiver.join();
  while (finished < 2 * kSends && !abort->raised()) std::this_thread::yield();
  std::vector<int> expected(kSends);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK_FALSE(abort->raised());
  CHECK_FALSE(overlapped);
  CHECK(sent == expected);
  CHECK(received == expected);
}

TEST_CASE("an abort during traffic answers every receive exactly once") {
  for (int round = 0; round < 30; ++round) {
    const auto abort = std::make_shared<AbortSignal>();
    LocalTransport transport(abort, 4);
    const auto a = transport.Open("a");
    const auto b = transport.Open("b");
    std::atomic<int> answers = 0;
    std::thread receiver([&] {
      for (Tag tag = 0; tag < 200; ++tag)
        b->Receive(
            "a", tag, Buffer(), [&](const Buffer&) { ++answers; },
            [&](const std::string&) { ++answers; });
    });
    std::thread sender([&] {
      for (Tag tag = 0; tag < 200; ++tag) a->Send("b", tag, Tensor(1, 1), Ignore());
    });
    while (answers < 50) std::this_thread::yield();
    abort->Raise("stop");
    receiver.join();
    sender.join();
    REQUIRE(answers == 200);
  }
}
