#include "cluster/handshake.hpp"

#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "cluster/bytes.hpp"

using namespace troupe;
using Status = Handshake::Status;

namespace {

Opening Of(ProcessId from, ProcessId to, Purpose purpose = Purpose::kJoin, std::uint64_t run = 0) {
  Opening opening;
  opening.from = from;
  opening.to = to;
  opening.purpose = purpose;
  opening.run = run;
  FillRandom(opening.nonce);
  return opening;
}

/// What each side sent, in order.
struct Recording {
  std::vector<std::byte> from_initiator;
  std::vector<std::byte> from_acceptor;
};

/// Moves what `from` has to say to `to`, as far as it wants it.
bool Pass(Handshake& from, Handshake& to, std::vector<std::byte>& record) {
  const auto bytes = from.TakeOutput();
  record.insert(record.end(), bytes.begin(), bytes.end());
  if (to.wanted() < bytes.size()) return false;
  to.Receive(bytes);
  return !bytes.empty();
}

Recording Talk(Handshake& initiator, Handshake& acceptor) {
  Recording record;
  bool moved = true;
  while (moved) {
    moved = Pass(initiator, acceptor, record.from_initiator);
    moved = Pass(acceptor, initiator, record.from_acceptor) || moved;
  }
  return record;
}

/// Gives as much of `bytes` as is wanted, and forgets what is said to it.
void Feed(Handshake& handshake, std::span<const std::byte> bytes, std::size_t piece) {
  while (!bytes.empty() && handshake.wanted() > 0) {
    const std::size_t n = std::min({bytes.size(), handshake.wanted(), piece});
    handshake.Receive(bytes.first(n));
    bytes = bytes.subspan(n);
    handshake.TakeOutput();
  }
}

}  // namespace

TEST_CASE("two that have the key prove it and share a session key of their own") {
  const RunKey key = RunKey::Generate();
  Handshake first = Handshake::Initiate(key, Of(2, 0));
  Handshake answer = Handshake::Accept(key, Of(0, 0));
  const Recording record = Talk(first, answer);
  REQUIRE(first.status() == Status::kProven);
  REQUIRE(answer.status() == Status::kProven);
  CHECK(answer.other().from == 2);
  CHECK(answer.other().purpose == Purpose::kJoin);
  CHECK(first.session() == answer.session());
  CHECK(record.from_initiator.size() == 96);
  CHECK(record.from_acceptor.size() == 96);
  Handshake again = Handshake::Initiate(key, Of(2, 0));
  Handshake other_answer = Handshake::Accept(key, Of(0, 0));
  Talk(again, other_answer);
  CHECK_FALSE(again.session() == first.session());
}

TEST_CASE("a wrong key is noticed by the acceptor, which says so and proves nothing") {
  Handshake first = Handshake::Initiate(RunKey::Generate(), Of(1, 0));
  Handshake answer = Handshake::Accept(RunKey::Generate(), Of(0, 0));
  const Recording record = Talk(first, answer);
  CHECK(answer.status() == Status::kStranger);
  CHECK(first.status() == Status::kStranger);
  CHECK(first.opened());
  const auto& said = record.from_acceptor;
  REQUIRE(said.size() == Opening::kBytes + 32);
  CHECK(std::all_of(said.begin() + Opening::kBytes, said.end(),
                    [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("an acceptor that cannot prove the key is a stranger") {
  const RunKey key = RunKey::Generate();
  Handshake first = Handshake::Initiate(key, Of(1, 0));
  Feed(first, EncodeOpening(Of(0, 1)), 100);
  Feed(first, std::vector<std::byte>(32), 100);
  CHECK(first.status() == Status::kStranger);
}

TEST_CASE("a recorded handshake proves nothing a second time") {
  const RunKey key = RunKey::Generate();
  Handshake first = Handshake::Initiate(key, Of(1, 0));
  Handshake answer = Handshake::Accept(key, Of(0, 0));
  const Recording record = Talk(first, answer);
  REQUIRE(answer.status() == Status::kProven);
  Handshake fresh = Handshake::Accept(key, Of(0, 0));
  Feed(fresh, record.from_initiator, 100);
  CHECK(fresh.status() == Status::kStranger);
  Handshake other = Handshake::Initiate(key, Of(1, 0));
  Feed(other, record.from_acceptor, 100);
  CHECK(other.status() == Status::kStranger);
}

TEST_CASE("what is sent back to its sender proves nothing") {
  const RunKey key = RunKey::Generate();
  Handshake first = Handshake::Initiate(key, Of(1, 0));
  for (int round = 0; round < 2; ++round) {
    const auto bytes = first.TakeOutput();
    REQUIRE(bytes.size() == first.wanted());
    first.Receive(bytes);
  }
  CHECK(first.status() == Status::kStranger);
}

TEST_CASE("two versions that both have the key say which they are, with the same words") {
  const RunKey key = RunKey::Generate();
  Opening newer = Of(2, 0);
  newer.version = kWireVersion + 1;
  Handshake first = Handshake::Initiate(key, newer);
  Handshake answer = Handshake::Accept(key, Of(0, 0));
  Talk(first, answer);
  CHECK(first.status() == Status::kVersion);
  CHECK(answer.status() == Status::kVersion);
  CHECK(first.problem() == "process 2 speaks wire version " + std::to_string(kWireVersion + 1) +
                               ", process 0 speaks wire version " + std::to_string(kWireVersion) +
                               ": they are different builds of troupe");
  CHECK(answer.problem() == first.problem());
  Handshake stranger = Handshake::Initiate(RunKey::Generate(), newer);
  Handshake other = Handshake::Accept(key, Of(0, 0));
  Talk(stranger, other);
  CHECK(other.status() == Status::kStranger);
}

TEST_CASE("a process that answers in the place of another, or in another run, is detected") {
  const RunKey key = RunKey::Generate();
  const auto status = [&](const Opening& asks, const Opening& answers) {
    Handshake first = Handshake::Initiate(key, asks);
    Handshake second = Handshake::Accept(key, answers);
    Talk(first, second);
    CHECK(first.status() == second.status());
    CHECK(first.problem() == second.problem());
    return first.status();
  };
  const auto control = Purpose::kControl;
  CHECK(status(Of(2, 1, control, 7), Of(1, 0, control, 7)) == Status::kProven);
  CHECK(status(Of(2, 1, control, 7), Of(0, 0, control, 7)) == Status::kDisagrees);
  CHECK(status(Of(2, 1, control, 7), Of(1, 0, control, 8)) == Status::kDisagrees);
  CHECK(status(Of(2, 1, control, 7), Of(1, 0, control, 0)) == Status::kDisagrees);
  CHECK(status(Of(2, 1, control, 0), Of(1, 0, control, 0)) == Status::kDisagrees);
  CHECK(status(Of(2, 0), Of(0, 0, control, 9)) == Status::kProven);
  CHECK(status(Of(2, 0, static_cast<Purpose>(9)), Of(0, 0)) == Status::kDisagrees);
}

TEST_CASE("who does not begin like a Troupe process is not waited for") {
  Handshake answer = Handshake::Accept(RunKey::Generate(), Of(0, 0));
  const std::string text = "GET";
  answer.Receive(std::as_bytes(std::span(text)));
  CHECK(answer.status() == Status::kStranger);
  CHECK(answer.wanted() == 0);
}

TEST_CASE("of ten thousand changed handshakes none is proven and none does harm") {
  const RunKey key = RunKey::Generate();
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int i = 0; i < 10'000; ++i) {
    Handshake first = Handshake::Initiate(key, Of(1, 0));
    Handshake answer = Handshake::Accept(key, Of(0, 0));
    // One change of any byte in either direction, or bytes left out.
    const std::size_t changed = below(192);
    const auto flip = static_cast<std::byte>(1 + below(255));
    const bool cut = below(4) == 0;
    std::size_t place = 0;
    bool changed_one = false;
    for (int move = 0; move < 4; ++move) {
      Handshake& from = move % 2 == 0 ? first : answer;
      Handshake& to = move % 2 == 0 ? answer : first;
      auto bytes = from.TakeOutput();
      if (changed >= place && changed < place + bytes.size()) {
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(changed - place);
        if (cut) {
          bytes.erase(at);
        } else {
          *at ^= flip;
        }
        changed_one = true;
      }
      place += bytes.size();
      Feed(to, {}, 1);
      std::span<const std::byte> rest = bytes;
      while (!rest.empty() && to.wanted() > 0) {
        const std::size_t n = std::min({rest.size(), to.wanted(), 1 + below(40)});
        to.Receive(rest.first(n));
        rest = rest.subspan(n);
      }
    }
    const bool both = first.status() == Status::kProven && answer.status() == Status::kProven;
    if (changed_one) REQUIRE_FALSE(both);
    if (!changed_one) REQUIRE(both);
    REQUIRE(first.wanted() <= Opening::kBytes);
  }
}

TEST_CASE("ten thousand random or cut beginnings leave the acceptor unconvinced") {
  const RunKey key = RunKey::Generate();
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    Handshake answer = Handshake::Accept(key, Of(0, 0));
    std::vector<std::byte> bytes = EncodeOpening(Of(1, 0));
    bytes.resize(random() % 200);
    // Half keep the beginning, so that the rest is reached.
    for (std::size_t b = i % 2 == 0 ? 0 : 8; b < bytes.size(); ++b)
      bytes[b] = static_cast<std::byte>(random());
    Feed(answer, bytes, 1 + random() % 70);
    REQUIRE(answer.status() != Status::kProven);
    REQUIRE(answer.status() != Status::kVersion);
    if (answer.wanted() > 0)
      REQUIRE_THROWS_AS(answer.Receive(std::vector<std::byte>(answer.wanted() + 1)), WireError);
  }
}
