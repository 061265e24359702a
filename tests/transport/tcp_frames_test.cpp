// What a connection of tensors makes of bytes that are cut, changed, moved or made up.
#include <cstring>
#include <random>

#include <catch2/catch.hpp>

#include "tests/transport/plane_job.hpp"
#include "transport/tcp/peer.hpp"

using namespace troupe;
using troupe::testing::Blank;
using troupe::testing::Outcomes;
using troupe::testing::Pattern;
using troupe::testing::SameBytes;
using troupe::testing::SecretOf;
using troupe::testing::TcpPair;

namespace {

using Bytes = std::vector<std::byte>;

/// One side of a connection without a socket.
struct End {
  End(ProcessId self, ProcessId other, Verify verify)
      : writer(WireKey(SecretOf(1), {}, self), verify),
        peer(other, "n" + std::to_string(other), writer, counters,
             {[this](const PullRequest& request) { pulls.push_back(request); },
              [this](std::uint64_t key, std::uint64_t) { returned.push_back(key); }}),
        reader(WireKey(SecretOf(1), {}, other), verify, peer) {}

  /// All that it has to send.
  Bytes Out() {
    Bytes bytes;
    std::array<iovec, 8> space;
    while (const std::size_t used = writer.Gather(space)) {
      std::size_t size = 0;
      for (std::size_t i = 0; i < used; ++i) {
        const auto* data = static_cast<const std::byte*>(space[i].iov_base);
        bytes.insert(bytes.end(), data, data + space[i].iov_len);
        size += space[i].iov_len;
      }
      writer.Written(size, [this](const OutMessage& message) {
        if (message.label.stream != kPullStream) ++num_sent;
      });
    }
    return bytes;
  }
  /// Reads `bytes` in pieces of up to `most`.
  void In(std::span<const std::byte> bytes, std::size_t most = 1 << 20) {
    std::minstd_rand random(static_cast<unsigned>(bytes.size()));
    while (!bytes.empty()) {
      std::size_t left = std::min(bytes.size(), 1 + random() % most);
      std::size_t put = 0;
      for (const iovec& space : reader.Space()) {
        const std::size_t size = std::min(left, space.iov_len);
        if (size > 0) std::memcpy(space.iov_base, bytes.data() + put, size);
        put += size;
        left -= size;
      }
      reader.Filled(put);
      bytes = bytes.subspan(put);
    }
  }
  void Receive(Label label, const Buffer& destination) {
    peer.Receive({0, label, destination, "edge a>b", [this] { ++num_received; },
                  [this](const Failure& failure) { errors.push_back(failure.text); }});
  }

  PlaneCounters counters;
  FrameWriter writer;
  std::vector<PullRequest> pulls;
  std::vector<std::uint64_t> returned;
  int num_received = 0;
  int num_sent = 0;
  std::vector<std::string> errors;
  TcpPeer peer;
  FrameReader reader;
};

/// n0, n1, and what n0 sends n1: a small message, one in pieces, a pull, a return.
struct Conversation {
  explicit Conversation(Verify verify) : sender(0, 1, verify), receiver(1, 0, verify) {
    receiver.Receive({1, 1}, small);
    receiver.Receive({1, 2}, large);
    sender.In(receiver.Out());  // ready for the large one
    sender.peer.Send({{1, 1}, Pattern(1000, 1), nullptr});
    sender.peer.Send({{1, 2}, Pattern(600000, 2), nullptr});
    sender.peer.RequestPull({0, 77, 5, 100, 1});
    sender.peer.Return(78, 3);
    bytes = sender.Out();
  }

  End sender;
  End receiver;
  Buffer small = Blank(1000);
  Buffer large = Blank(600000);
  Bytes bytes;
};

/// A frame as n0 may sign it.
Frame Signed(Frame frame, std::uint64_t counter) {
  WireKey key(SecretOf(1), {}, 0);
  frame.counter = counter;
  frame.mac = key.Sign(WirePurpose::kHeader, counter, SignedPart(frame), {});
  return frame;
}

std::span<const std::byte> BytesOf(const Frame& frame) {
  return std::as_bytes(std::span(&frame, 1));
}

}  // namespace

TEST_CASE("frames in pieces of any size are what was sent") {
  for (const Verify verify : {Verify::kOff, Verify::kHeader, Verify::kPayload})
    for (const std::size_t most : {1, 7, 100, 5000, 300000, 1 << 20}) {
      INFO("verify " << static_cast<int>(verify) << ", up to " << most);
      Conversation talk(verify);
      talk.receiver.In(talk.bytes, most);
      CHECK(talk.receiver.num_received == 2);
      CHECK(SameBytes(talk.small, Pattern(1000, 1)));
      CHECK(SameBytes(talk.large, Pattern(600000, 2)));
      REQUIRE(talk.receiver.pulls.size() == 1);
      CHECK(talk.receiver.pulls[0].key == 77);
      CHECK(talk.receiver.returned == std::vector<std::uint64_t>{78});
      CHECK(talk.sender.num_sent == 2);
    }
}

TEST_CASE("a message leaves before its receive is posted, as far as credit goes") {
  End sender(0, 1, Verify::kHeader);
  End receiver(1, 0, Verify::kHeader);
  const auto talk = [&] {
    for (int i = 0; i < 3; ++i) {
      receiver.In(sender.Out());
      sender.In(receiver.Out());
    }
  };
  const std::int64_t size = 1 << 20;
  const Buffer kept = Blank(size);
  sender.peer.Send({{1, 1}, Pattern(size, 1), nullptr});
  const Bytes bytes = sender.Out();
  CHECK(bytes.size() > static_cast<std::size_t>(size));
  receiver.In(std::span(bytes).first(bytes.size() / 2));
  receiver.In(std::span(bytes).subspan(bytes.size() / 2));
  CHECK(receiver.peer.early_kept() == CostOf(static_cast<std::uint64_t>(size)));
  receiver.Receive({1, 1}, kept);
  CHECK(receiver.num_received == 1);
  CHECK(SameBytes(kept, Pattern(size, 1)));
  CHECK(receiver.peer.early_kept() == 0);
  talk();

  // The same label once more, and this time the receive comes first.
  const Buffer direct = Blank(size);
  receiver.Receive({1, 1}, direct);
  talk();
  sender.peer.Send({{1, 1}, Pattern(size, 2), nullptr});
  talk();
  CHECK(SameBytes(direct, Pattern(size, 2)));

  std::vector<Buffer> all;
  for (std::uint64_t i = 0; i < 8; ++i) sender.peer.Send({{2, i}, Pattern(2 * size, i), nullptr});
  const Bytes early = sender.Out();
  CHECK(early.size() < kEarlyBudget);
  CHECK(early.size() > kEarlyBudget / 2);
  receiver.In(early);
  for (std::uint64_t i = 8; i-- > 0;) {
    all.push_back(Blank(2 * size));
    receiver.Receive({2, i}, all.back());
    talk();
  }
  CHECK(receiver.num_received == 10);
  for (std::uint64_t i = 0; i < 8; ++i) CHECK(SameBytes(all[7 - i], Pattern(2 * size, i)));
  CHECK(receiver.errors.empty());
}

TEST_CASE("an early message of the wrong size fails its receive, whichever came first") {
  for (const bool posted : {true, false}) {
    End sender(0, 1, Verify::kHeader);
    End receiver(1, 0, Verify::kHeader);
    if (posted) receiver.Receive({1, 1}, Blank(500000));
    sender.peer.Send({{1, 1}, Pattern(1 << 20, 1), nullptr});
    receiver.In(sender.Out());
    if (!posted) receiver.Receive({1, 1}, Blank(500000));
    REQUIRE(receiver.errors.size() == 1);
    CHECK(receiver.errors[0] ==
          "edge a>b: the slice from n0 failed its check (header): expected 500000 bytes, it "
          "announces 1048576");
    CHECK(receiver.peer.early_kept() == 0);
  }
}

TEST_CASE("a small message is not behind a large one") {
  End sender(0, 1, Verify::kHeader);
  End receiver(1, 0, Verify::kHeader);
  receiver.Receive({1, 1}, Blank(20 << 20));
  sender.In(receiver.Out());
  sender.peer.Send({{1, 1}, Pattern(20 << 20, 1), nullptr});
  std::array<iovec, 8> space;
  REQUIRE(sender.writer.Gather(space) > 0);  // it has begun
  receiver.Receive({1, 2}, Blank(100));
  sender.peer.Send({{1, 2}, Pattern(100, 1), nullptr});
  const Bytes bytes = sender.Out();
  receiver.In(std::span(bytes).first(2 << 20));
  CHECK(receiver.num_received == 1);
  receiver.In(std::span(bytes).subspan(2 << 20));
  CHECK(receiver.num_received == 2);
}

TEST_CASE("a header that was changed in any bit ends the connection before it is looked at") {
  for (std::size_t at = 0; at < sizeof(Frame); ++at) {
    Conversation talk(Verify::kHeader);
    talk.bytes[at] ^= std::byte{4};
    CHECK_THROWS_WITH(talk.receiver.In(talk.bytes),
                      "frame 1 failed its check (header): its MAC is wrong");
    CHECK(talk.receiver.num_received == 0);
  }
}

TEST_CASE("one changed byte of a payload fails its receive where payloads are checked") {
  Conversation talk(Verify::kPayload);
  talk.bytes[sizeof(Frame) + 1000 + sizeof(WireMac) + 3 * sizeof(Frame) + 300000] ^= std::byte{1};
  CHECK_THROWS_WITH(talk.receiver.In(talk.bytes),
                    Catch::Contains("failed its check (payload): its MAC is wrong"));
  REQUIRE(talk.receiver.errors.size() == 1);
  CHECK(talk.receiver.errors[0] ==
        "edge a>b: the slice from n0 failed its check (payload): its MAC is wrong");
  CHECK(talk.receiver.num_received == 1);
}

TEST_CASE("frames that are missing, repeated, moved or sent back end the connection") {
  const std::size_t first = sizeof(Frame) + 1000;
  const auto refused = [](Conversation& talk, const Bytes& bytes) {
    CHECK_THROWS_WITH(talk.receiver.In(bytes), Catch::Contains("its MAC is wrong"));
  };
  Conversation missing(Verify::kHeader);
  refused(missing, Bytes(missing.bytes.begin() + first, missing.bytes.end()));
  Conversation repeated(Verify::kHeader);
  Bytes twice(repeated.bytes.begin(), repeated.bytes.begin() + first);
  twice.insert(twice.end(), repeated.bytes.begin(), repeated.bytes.end());
  refused(repeated, twice);
  Conversation back(Verify::kHeader);
  CHECK_THROWS_WITH(back.sender.In(back.bytes), Catch::Contains("its MAC is wrong"));
}

TEST_CASE("a connection that is cut anywhere delivers what was whole, and nothing else") {
  std::minstd_rand random(1);
  for (int i = 0; i < 200; ++i) {
    Conversation talk(Verify::kPayload);
    const std::size_t size = random() % talk.bytes.size();
    talk.receiver.In(std::span(talk.bytes).first(size));
    const bool small = size >= sizeof(Frame) + 1000 + sizeof(WireMac);
    CHECK(talk.receiver.num_received == (small ? 1 : 0));
    talk.receiver.peer.FailAll([](const Reception& it) { return it.what + ": n0 is gone"; });
    CHECK(talk.receiver.errors.size() == (small ? 1u : 2u));
  }
}

TEST_CASE("frames with a right MAC and impossible contents are refused") {
  const auto error_of = [](const std::vector<Frame>& frames) {
    End receiver(1, 0, Verify::kHeader);
    receiver.Receive({1, 1}, Blank(100));
    receiver.Receive({1, 2}, Blank(600000));
    std::uint64_t counter = 0;
    try {
      for (const Frame& frame : frames) receiver.In(BytesOf(Signed(frame, ++counter)));
    } catch (const FrameError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::uint64_t huge = ~std::uint64_t{0};
  const auto frame = [](FrameKind kind, Label label, std::uint64_t offset, std::uint64_t total,
                        std::uint64_t num_bytes) {
    Frame made;
    made.kind = kind;
    made.stream = label.stream;
    made.sequence = label.sequence;
    made.offset = offset;
    made.total = total;
    made.num_bytes = num_bytes;
    return made;
  };
  const auto check = Catch::Contains("failed its check (header)");
  CHECK_THAT(error_of({frame(static_cast<FrameKind>(0), {1, 1}, 0, 0, 0)}), check);
  CHECK_THAT(error_of({frame(static_cast<FrameKind>(9), {1, 1}, 0, 0, 0)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kEarly, {1, 3}, 0, huge, huge)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kEarly, {1, 1}, 1, 100, 100)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kPiece, {1, 2}, huge, 600000, 1000)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kPiece, {1, 2}, 599999, 600000, 2)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kPiece, {1, 2}, 0, 600000, 600000)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kAnnounce, {1, 3}, 0, 5, 5)}), check);
  CHECK_THAT(error_of({frame(FrameKind::kEarly, {1, 5}, 0, 5, 0),
                       frame(FrameKind::kEarly, {1, 5}, 2, 5, 3)}),
             Catch::Contains("expected byte 0 of 5 of an early message, got byte 2 of 5"));
  CHECK_THAT(error_of({frame(FrameKind::kPiece, {1, 9}, 0, 600000, 1000)}),
             Catch::Contains("a message that is not received"));
  CHECK_THAT(error_of({frame(FrameKind::kPiece, {1, 2}, 5, 600000, 1000)}),
             Catch::Contains("edge a>b: expected byte 0 of 600000, got byte 5 of 600000"));
  CHECK_THAT(error_of({frame(FrameKind::kCredit, {}, 0, 1, 0)}),
             Catch::Contains("credit for bytes that were not sent"));
  CHECK(error_of({frame(FrameKind::kRefused, {5, 5}, 0, 5, 0)}) == "none");
  CHECK(error_of({frame(FrameKind::kReady, {5, 5}, 0, huge, 0)}) == "none");
}

TEST_CASE("what a peer sends early is bounded, whatever it says") {
  End receiver(1, 0, Verify::kHeader);
  Frame frame;
  frame.stream = 1;
  std::uint64_t kept = 0;
  const auto flood = [&] {
    for (std::uint64_t i = 1; i < 100000; ++i) {
      frame.sequence = i;
      receiver.In(BytesOf(Signed(frame, i)));
      kept = receiver.peer.early_kept();
    }
  };
  CHECK_THROWS_WITH(flood(), Catch::Contains("bytes before they are received, got more"));
  CHECK(kept <= kEarlyBudget);
}

TEST_CASE("frames at random, with a right MAC, do nothing worse than ending the connection") {
  std::mt19937_64 random(7);
  int num_ended = 0;
  for (int round = 0; round < 300; ++round) {
    End receiver(1, 0, Verify::kHeader);
    for (std::uint64_t i = 0; i < 8; ++i) receiver.Receive({1, i}, Blank(random() % 200000));
    for (std::uint64_t i = 0; i < 8; ++i)
      receiver.peer.Send({{1, i}, Blank(static_cast<std::int64_t>(random() % 200000)), nullptr});
    try {
      for (std::uint64_t counter = 1; counter < 200; ++counter) {
        const auto number = [&](std::uint64_t below) {
          return random() % 10 == 0 ? random() : random() % below;
        };
        Frame frame;
        frame.kind = static_cast<FrameKind>(1 + number(8));
        frame.stream = random() % 4 == 0 ? kPullStream : 1;
        frame.sequence = number(12);
        frame.offset = number(3);
        frame.total = random() % 2 == 0 ? number(200000) : number(100);
        frame.num_bytes = frame.kind == FrameKind::kEarly   ? frame.total
                          : frame.kind == FrameKind::kPiece ? number(frame.total + 1)
                                                            : 0;
        receiver.In(BytesOf(Signed(frame, counter)));
        receiver.In(Bytes(std::min<std::uint64_t>(frame.num_bytes, kPieceBytes)));
        receiver.Out();
      }
    } catch (const FrameError&) {
      ++num_ended;
    }
  }
  CHECK(num_ended > 200);
}

TEST_CASE("bytes of a stranger on a connection end it, and name the peer") {
  for (const std::size_t size : {133, 72, 5000}) {
    const auto abort = std::make_shared<AbortSignal>();
    Outcomes failures(abort);
    Outcomes receives(abort);
    auto [mine, theirs] = TcpPair();
    TcpOptions options;
    options.names = {"n0", "n1"};
    options.peer_failed = [&](ProcessId, const std::string& reason) { failures.End(reason); };
    options.connections.push_back({1, std::move(mine), SecretOf(1)});
    TcpPlane plane(std::move(options));
    plane.Connect({{}, {}});
    plane.Receive({1, {1, 1}, Blank(8), "edge a>b", receives.Good(), receives.Bad()});
    // The beginning of what aborts UCX, and whatever comes then.
    Bytes bytes(size, std::byte{0});
    const std::uint64_t magic = 0xCAFEBABE12345678;
    std::memcpy(bytes.data(), &magic, sizeof magic);
    REQUIRE(::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
    REQUIRE(failures.Await(1));
    REQUIRE(receives.Await(1));
    CHECK(failures.TakeErrors().at(0) ==
          "its data connection failed: frame 1 failed its check (header): its MAC is wrong");
    CHECK_THAT(receives.TakeErrors().at(0), Catch::Contains("edge a>b: n1 is gone: "));
  }
}
