// What a process with UCX that, in the worst case, knows where a message goes can do to a
// plane.
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/transport/plane_job.hpp"
#include "transport/ucx/engine_state.hpp"
#include "transport/ucx/handles.hpp"
#include "transport/ucx/wire.hpp"
#include "transport/wire_key.hpp"

using namespace troupe;
using troupe::testing::Blank;
using troupe::testing::Pattern;
using troupe::testing::PlaneJob;
using troupe::testing::SameBytes;
using troupe::testing::UcxOptionsOf;

namespace {

/// A third party with a worker of its own and n0's keys, which it uses badly.
class Forger {
 public:
  Forger(PlaneJob& job, ProcessId victim)
      : endpoint_(worker_, Unpack(job.addresses[static_cast<std::size_t>(victim)], "victim").worker,
                  "victim", [](ucs_status_t) {}),
        key(UcxOptionsOf(0, 2, "").secret, Unpack(job.addresses[0], "n0").salt, 0) {}
  ~Forger() {
    endpoint_.Close();
    while (endpoint_.closing()) worker_.Progress();
  }

  /// A header as n0 would make it for `label`.
  MessageHeader Header(Label label, const Buffer& payload, Verify verify) {
    MessageHeader header;
    header.verify = verify;
    header.to = 1;
    header.stream = label.stream;
    header.sequence = label.sequence;
    header.num_bytes = payload.num_bytes();
    header.counter = 1000 + label.sequence;
    const std::span<const std::byte> body(payload.data(), payload.num_bytes());
    header.mac = key.Sign(WirePurpose::kHeader, header.counter, SignedPart(header),
                          verify == Verify::kPayload ? body : body.first(0));
    return header;
  }
  void Send(std::span<const std::byte> bytes, std::uint64_t tag) {
    UcxRequest request([] {});
    endpoint_.Send(request, bytes, tag);
    Finish(request);
  }
  void SendMessage(Label label, const MessageHeader& header, const Buffer& payload) {
    Send(std::as_bytes(std::span(&header, 1)), key.Tag(WirePurpose::kHeader, 1, label));
    Send({payload.data(), payload.num_bytes()}, key.Tag(WirePurpose::kPayload, 1, label));
  }
  void SendControl(std::span<const std::byte> bytes) {
    UcxRequest request([] {});
    endpoint_.SendMessage(request, kControlId, bytes);
    Finish(request);
  }

 private:
  void Finish(const UcxRequest& request) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (request.open() && std::chrono::steady_clock::now() < end) worker_.Progress();
    if (request.open()) std::abort();  // it is on the stack
  }

  UcxContext context_{UcxSettings{"posix,sysv,cma", "lo", ""}};
  UcxWorker worker_{context_};
  UcxEndpoint endpoint_;

 public:
  WireKey key;
};

/// Receives an 8 byte message `sequence` on n1 and gives its error, or "".
std::string Receive(PlaneJob& job, std::uint64_t sequence, const Buffer& destination) {
  job[1].Receive(
      {0, {1, sequence}, destination, "edge a>b", job.receives.Good(), job.receives.Bad()});
  REQUIRE(job.receives.Await(1));
  const auto errors = job.receives.TakeErrors();
  return errors.empty() ? "" : errors.front();
}

}  // namespace

TEST_CASE("a header that was tampered with fails the receive by name") {
  PlaneJob job;
  Forger forger(job, 1);
  const Buffer payload = Pattern(8, 3);
  std::uint64_t sequence = 0;
  const auto error_of = [&](auto tamper) {
    const Label label{1, ++sequence};
    MessageHeader header = forger.Header(label, payload, Verify::kHeader);
    tamper(header);
    forger.SendMessage(label, header, payload);
    return Receive(job, sequence, Blank(8));
  };
  const auto failed = Catch::Contains("edge a>b: the slice from n0 failed its check (header)");
  // The forger does it right: otherwise the rest would show nothing.
  CHECK(error_of([](MessageHeader&) {}).empty());
  CHECK_THAT(error_of([](MessageHeader& it) { it.mac[15] ^= std::byte{1}; }),
             failed && Catch::Contains("MAC"));
  CHECK_THAT(error_of([](MessageHeader& it) { ++it.counter; }), failed && Catch::Contains("MAC"));
  CHECK_THAT(error_of([](MessageHeader& it) { ++it.num_bytes; }),
             failed && Catch::Contains("expected 8 bytes, it announces 9"));
  CHECK_THAT(error_of([](MessageHeader& it) { ++it.sequence; }), failed);
  CHECK_THAT(error_of([](MessageHeader& it) { ++it.stream; }), failed);
  CHECK_THAT(error_of([](MessageHeader& it) { it.from = 1; }), failed);
  CHECK_THAT(error_of([](MessageHeader& it) { it.magic = 0; }), failed);
  CHECK_THAT(error_of([](MessageHeader& it) { it.verify = Verify::kPayload; }), failed);
}

TEST_CASE("a header of the wrong size fails the receive, too") {
  PlaneJob job;
  Forger forger(job, 1);
  std::uint64_t sequence = 0;
  for (const std::size_t size : {0, 63, 65, 4000}) {
    const Label label{1, ++sequence};
    const std::vector<std::byte> header(size);
    forger.Send(header, forger.key.Tag(WirePurpose::kHeader, 1, label));
    CHECK_THAT(Receive(job, sequence, Blank(8)),
               Catch::Contains("edge a>b: the slice from n0 failed its check (header)"));
  }
}

TEST_CASE("one flipped byte of a payload is noticed where payloads are checked") {
  PlaneJob job({.verify = Verify::kPayload});
  Forger forger(job, 1);
  for (const std::int64_t size : {8, 100000}) {
    const auto sequence = static_cast<std::uint64_t>(size);
    const Label good{1, sequence};
    const Label bad{1, sequence + 1};
    const Buffer payload = Pattern(size, 3);
    const auto receive = [&](Label label) {
      job[1].Receive({0, label, Blank(size), "edge a>b", job.receives.Good(), job.receives.Bad()});
    };
    receive(good);
    forger.SendMessage(good, forger.Header(good, payload, Verify::kPayload), payload);
    REQUIRE(job.receives.Await(1));
    CHECK(job.receives.TakeErrors().empty());

    const MessageHeader header = forger.Header(bad, payload, Verify::kPayload);
    payload.data()[size / 2] ^= std::byte{1};
    receive(bad);
    forger.SendMessage(bad, header, payload);
    REQUIRE(job.receives.Await(1));
    CHECK_THAT(job.receives.TakeErrors().at(0),
               Catch::Contains("edge a>b: the slice from n0 failed its check (payload)"));
  }
}

TEST_CASE("control messages that are garbage, forged or repeated do nothing but count") {
  PlaneJob job;
  const TensorReference reference = job.store(1).Refer(Pattern(100, 1));
  Forger forger(job, 1);
  std::uint64_t expected = 0;
  const auto counted = [&] {
    ++expected;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (job[1].stats().strangers < expected && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return job[1].stats().strangers == expected && job.store(1).num_pinned() == 1;
  };
  const auto send = [&](const ControlMessage& message) {
    forger.SendControl(std::as_bytes(std::span(&message, 1)));
  };
  ControlMessage message;
  message.kind = ControlKind::kReturn;
  message.to = 1;
  message.key = reference.key;
  message.number = reference.weight;
  message.counter = 10;
  const auto sign = [&] {
    message.mac = forger.key.Sign(WirePurpose::kControl, message.counter, SignedPart(message), {});
  };
  forger.SendControl({});
  CHECK(counted());
  forger.SendControl(std::vector<std::byte>(1000));
  CHECK(counted());
  send(message);  // without a MAC
  CHECK(counted());
  for (const ProcessId from : {-1, 1, 2, 1 << 30}) {
    message.from = from;
    sign();
    send(message);
    CHECK(counted());
  }
  message.from = 0;
  message.to = 0;
  sign();
  send(message);
  CHECK(counted());

  // Genuine once, a replay after that.
  message.to = 1;
  message.number = 1;
  sign();
  send(message);
  send(message);
  CHECK(counted());
  message.counter = 11;
  message.number = reference.weight - 1;
  sign();
  send(message);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (job.store(1).num_pinned() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  CHECK(job.store(1).num_pinned() == 0);
  CHECK(job.failures.count() == 0);

  // And weight that was not given is a fault of the process that returns it.
  message.counter = 12;
  sign();
  send(message);
  REQUIRE(job.failures.Await(1));
  CHECK_THAT(job.failures.TakeErrors().at(0),
             Catch::Contains("n1 lost n0: it returned weight it did not have: tensor 1"));
}

TEST_CASE("a window takes every counter once, in nearly any order") {
  ReplayWindow window;
  CHECK_FALSE(window.Accept(0));
  for (const std::uint64_t counter : {1, 3, 2, 70, 8, 71, 69}) CHECK(window.Accept(counter));
  for (const std::uint64_t counter : {1, 2, 3, 7, 8, 69, 70, 71})
    CHECK_FALSE(window.Accept(counter));
  CHECK(window.Accept(1000));
  CHECK(window.Accept(937));
  CHECK_FALSE(window.Accept(936));
  CHECK(window.Accept(~std::uint64_t{0}));
}

TEST_CASE("keys differ by secret, salt and sender, tags by everything that names a message") {
  const WireSecret secret{};
  const WireSalt salt{};
  WireSecret other_secret{};
  other_secret[31] = std::byte{1};
  WireSalt other_salt{};
  other_salt[15] = std::byte{1};
  WireKey key(secret, salt, 0);
  WireKey same(secret, salt, 0);
  const std::uint64_t tag = key.Tag(WirePurpose::kPayload, 1, {2, 3});
  CHECK(same.Tag(WirePurpose::kPayload, 1, {2, 3}) == tag);
  CHECK(key.Tag(WirePurpose::kHeader, 1, {2, 3}) != tag);
  CHECK(key.Tag(WirePurpose::kPayload, 2, {2, 3}) != tag);
  CHECK(key.Tag(WirePurpose::kPayload, 1, {3, 3}) != tag);
  CHECK(key.Tag(WirePurpose::kPayload, 1, {2, 2}) != tag);
  const Buffer body = Pattern(100, 1);
  const std::span<const std::byte> bytes(body.data(), 100);
  const WireMac mac = key.Sign(WirePurpose::kHeader, 5, bytes.first(10), bytes.last(90));
  CHECK(same.Verify(mac, WirePurpose::kHeader, 5, bytes.first(10), bytes.last(90)));
  CHECK_FALSE(same.Verify(mac, WirePurpose::kControl, 5, bytes.first(10), bytes.last(90)));
  CHECK_FALSE(same.Verify(mac, WirePurpose::kHeader, 6, bytes.first(10), bytes.last(90)));
  for (WireKey* other : {new WireKey(other_secret, salt, 0), new WireKey(secret, other_salt, 0),
                         new WireKey(secret, salt, 1)}) {
    const std::unique_ptr<WireKey> owned(other);
    CHECK(other->Tag(WirePurpose::kPayload, 1, {2, 3}) != tag);
    CHECK_FALSE(other->Verify(mac, WirePurpose::kHeader, 5, bytes.first(10), bytes.last(90)));
  }
}

TEST_CASE("lanes are read from what UCX prints of an endpoint") {
  const std::string text =
      "# UCP endpoint\n#               peer: n1\n"
      "#   lane[0]:  3:sysv/memory.0 md[2]      -> md[2]/sysv/sysdev[255] am am_bw#0 keepalive\n"
      "#   lane[1]:  4:cma/memory.0 md[3]       -> md[3]/cma/sysdev[255] rma_bw#0\n"
      "#   lane[2]:  0:tcp/eth0.7.0 md[1]       -> md[1]/tcp/sysdev[255] rma_bw#0\n"
      "#   lane[3]:  0:tcp/eth0.7.1 md[1]       -> md[1]/tcp/sysdev[255] rma_bw#0\n"
      "#                tag_send: 0..<egr/short>..8185\n";
  CHECK(ParseLanes(text) == std::vector<std::string>{"sysv", "cma", "tcp/eth0.7"});
  CHECK(ParseLanes("").empty());
  CHECK(ParseLanes("lane[0]: nothing").empty());
}
