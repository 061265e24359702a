#include "cluster/join_message.hpp"

#include <random>

#include <catch2/catch.hpp>

#include "cluster/heartbeat.hpp"
#include "cluster/sealed_frame.hpp"

using namespace troupe;
using Catch::Matchers::Contains;

namespace {

Hello SomeHello() {
  Hello hello;
  hello.process = 2;
  hello.num_processes = 4;
  hello.name = "n2";
  hello.build = "0.1.0 abc";
  hello.config = "a = 1\nb = 2\n";
  hello.host = "boot=x";
  hello.generation = 3;
  hello.address = {"10.0.0.3", 41234};
  hello.pid = 99;
  hello.former = 4;
  hello.held = {{"memory/step-7", "abc", 7, {"a", "b", "c"}, {"a", "b"}},
                {"memory/step-8", "", 0, {}, {}}};
  return hello;
}

std::vector<JoinMessage> AllMessages() {
  Roster roster;
  roster.members = {SomeHello(), SomeHello()};
  roster.nonce = 0x123456789abcdef0;
  roster.run_directory = "runs/1";
  return {SomeHello(),
          roster,
          Refusal{{"no", JoinFault::kBuild}},
          NotNow{"later"},
          Ready{},
          MeshFailure{{"far", JoinFault::kUnreached}},
          Go{},
          TakePlace{2, 5}};
}

std::vector<std::byte> Concat(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  std::vector<std::byte> result = a;
  result.insert(result.end(), b.begin(), b.end());
  return result;
}

}  // namespace

TEST_CASE("a message that is encoded is the message that is decoded") {
  for (const JoinMessage& message : AllMessages()) {
    const auto bytes = Encode(message);
    const JoinMessage decoded = DecodeJoinMessage(bytes);
    CHECK(decoded.index() == message.index());
    CHECK(Encode(decoded) == bytes);
  }
  const auto hello = std::get<Hello>(DecodeJoinMessage(Encode(SomeHello())));
  CHECK(hello.config == SomeHello().config);
  CHECK(hello.former == 4);
  REQUIRE(hello.held.size() == 2);
  CHECK(hello.held[0].folder == "memory/step-7");
  CHECK(hello.held[0].manifest_sum == "abc");
  CHECK(hello.held[0].step == 7);
  CHECK(hello.held[0].all_files == std::vector<std::string>{"a", "b", "c"});
  CHECK(hello.held[0].files == std::vector<std::string>{"a", "b"});
  CHECK(hello.held[1].files.empty());
  CHECK(hello.address == SomeHello().address);
  CHECK(hello.generation == 3);
  CHECK(hello.pid == 99);
}

TEST_CASE("a cut message, a longer one and an unknown one are refused") {
  for (const JoinMessage& message : AllMessages()) {
    const auto bytes = Encode(message);
    for (std::size_t n = 0; n < bytes.size(); ++n)
      CHECK_THROWS_AS(DecodeJoinMessage(std::span(bytes).first(n)), WireError);
    CHECK_THROWS_AS(DecodeJoinMessage(Concat(bytes, {std::byte{0}})), WireError);
  }
  CHECK_THROWS_WITH(DecodeJoinMessage(std::vector<std::byte>{std::byte{8}}), "unknown message 8");
}

TEST_CASE("a roster that claims more members than it has bytes is not made room for") {
  ByteWriter writer;
  writer.U8(1);
  writer.U32(0xffffffff);
  CHECK_THROWS_WITH(DecodeJoinMessage(writer.Take()), Contains("4294967295 items"));
}

TEST_CASE("frames are opened in order by the other side only") {
  const RunKey session = RunKey::Generate();
  FrameSealer sealer(session, Side::kInitiator);
  const auto one = sealer.Seal(Encode(Refusal{{"one"}}));
  const auto two = sealer.Seal(Encode(Refusal{{"two"}}));
  const auto both = Concat(one, two);
  FrameOpener opener(session, Side::kInitiator);
  std::vector<std::string> texts;
  for (const std::byte b : both) {
    opener.Receive({&b, 1});
    while (const auto payload = opener.Next())
      texts.push_back(std::get<Refusal>(DecodeJoinMessage(*payload)).problem.text);
  }
  CHECK(texts == std::vector<std::string>{"one", "two"});

  const auto error = [&](const RunKey& key, Side other, const std::vector<std::byte>& bytes) {
    FrameOpener fresh(key, other);
    fresh.Receive(bytes);
    try {
      while (fresh.Next()) continue;
    } catch (const WireError& failure) {
      return std::string(failure.what());
    }
    return std::string("none");
  };
  CHECK(error(session, Side::kInitiator, both) == "none");
  CHECK(error(session, Side::kAcceptor, one) == "frame 0 has been changed on its way");
  CHECK(error(RunKey::Generate(), Side::kInitiator, one) == "frame 0 has been changed on its way");
  CHECK(error(session, Side::kInitiator, two) == "expected frame 0, got 1");
  CHECK(error(session, Side::kInitiator, Concat(one, one)) == "expected frame 1, got 0");
}

TEST_CASE("a frame that is too long is refused by its length alone") {
  ByteWriter writer;
  writer.U32(kLargestPayload + 1);
  writer.U64(0);
  FrameOpener opener(RunKey::Generate(), Side::kInitiator);
  opener.Receive(writer.Take());
  CHECK_THROWS_WITH(opener.Next(), Contains("of at most 1048576 bytes, got one of 1048577"));
  FrameSealer sealer(RunKey::Generate(), Side::kInitiator);
  CHECK_THROWS_AS(sealer.Seal(std::vector<std::byte>(kLargestPayload + 1)), WireError);
  CHECK_NOTHROW(sealer.Seal(std::vector<std::byte>(kLargestPayload)));
}

TEST_CASE("ten thousand changed frames are refused or incomplete, never opened") {
  const RunKey session = RunKey::Generate();
  FrameSealer sealer(session, Side::kAcceptor);
  const auto frame = sealer.Seal(Encode(SomeHello()));
  std::mt19937 random(42);
  for (int i = 0; i < 10'000; ++i) {
    auto bytes = frame;
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    for (auto n = 1 + random() % 3; n > 0 && !bytes.empty(); --n)
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    if (bytes == frame) continue;
    FrameOpener opener(session, Side::kAcceptor);
    opener.Receive(bytes);
    bool opened = false;
    try {
      opened = opener.Next().has_value();
    } catch (const WireError&) {
      // Refused: as it should be.
    }
    REQUIRE_FALSE(opened);
  }
}

TEST_CASE("ten thousand changed messages are decoded or refused, and do no harm") {
  std::mt19937 random(43);
  const auto messages = AllMessages();
  int num_decoded = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto bytes = Encode(messages[random() % messages.size()]);
    for (auto n = 1 + random() % 4; n > 0; --n)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 20));
    try {
      const JoinMessage message = DecodeJoinMessage(bytes);
      REQUIRE(Encode(message).size() == bytes.size());
      ++num_decoded;
    } catch (const WireError&) {
      // Refused: as it should be.
    }
  }
  CHECK(num_decoded > 0);
  CHECK(num_decoded < 10'000);
}

TEST_CASE("a heartbeat is read as it was written, and nothing else is one") {
  Heartbeat beat;
  beat.kind = Heartbeat::Kind::kGoodbye;
  beat.sequence = 5;
  beat.vitals = {77, true};
  beat.sent_ns = 1;
  beat.echo_ns = 2;
  beat.held_ns = 3;
  const auto bytes = Encode(beat);
  REQUIRE(bytes.size() == Heartbeat::kBytes);
  const auto decode = [](const std::vector<std::byte>& raw, std::uint64_t sequence) {
    return DecodeHeartbeat(std::span<const std::byte, Heartbeat::kBytes>(raw), sequence);
  };
  const Heartbeat back = decode(bytes, 5);
  CHECK(back.kind == Heartbeat::Kind::kGoodbye);
  CHECK(back.vitals.actions == 77);
  CHECK(back.vitals.busy);
  CHECK(back.held_ns == 3);
  CHECK_THROWS_WITH(decode(bytes, 4), "expected heartbeat 4, got 5");
  for (std::size_t i = 0; i < 16; ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{0x80};
    CHECK_THROWS_AS(decode(changed, 5), WireError);
  }
}
