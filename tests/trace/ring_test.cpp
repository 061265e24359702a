#include "trace/ring.hpp"

#include <atomic>
#include <thread>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// Every field follows from the number, so a mixture of two records shows.
PassRecord Numbered(std::uint64_t number) {
  const auto n = static_cast<std::int64_t>(number);
  PassRecord record;
  record.unit = n;
  record.round = n * 3;
  record.begin_ns = n * 5;
  record.end_ns = n * 7;
  record.stage = static_cast<std::int32_t>(n % 1009);
  record.dp = static_cast<std::int32_t>(n % 1013);
  record.rank = static_cast<std::int32_t>(n % 1019);
  record.kind = static_cast<WorkKind>(1 + number % kNumWorkKinds);
  return record;
}

void CheckContent(const RingSnapshot& snapshot) {
  for (std::size_t i = 0; i < snapshot.records.size(); ++i) {
    REQUIRE(snapshot.records[i] == Numbered(snapshot.first + i));
  }
}

TEST_CASE("a ring that is not full holds everything in order", "[trace]") {
  Ring ring(4);
  CHECK(ring.Snapshot().records.empty());
  for (std::uint64_t n = 0; n < 3; ++n) ring.Push(Numbered(n));
  const RingSnapshot snapshot = ring.Snapshot();
  CHECK(snapshot.first == 0);
  CHECK(snapshot.records.size() == 3);
  CheckContent(snapshot);
  CHECK(ring.num_dropped() == 0);
}

TEST_CASE("a full ring keeps the newest records and counts the dropped", "[trace]") {
  for (std::size_t capacity = 1; capacity <= 5; ++capacity) {
    Ring ring(capacity);
    for (std::uint64_t n = 0; n < 13; ++n) ring.Push(Numbered(n));
    const RingSnapshot snapshot = ring.Snapshot();
    CHECK(snapshot.first == 13 - capacity);
    CHECK(snapshot.records.size() == capacity);
    CheckContent(snapshot);
    CHECK(ring.num_pushed() == 13);
    CHECK(ring.num_dropped() == 13 - capacity);
  }
}

TEST_CASE("a snapshot from a number on leaves out what came before", "[trace]") {
  Ring ring(4);
  for (std::uint64_t n = 0; n < 6; ++n) ring.Push(Numbered(n));
  CHECK(ring.Snapshot(5).records == std::vector<PassRecord>{Numbered(5)});
  CHECK(ring.Snapshot(1).first == 2);
  CHECK(ring.Snapshot(6).first == 6);
  CHECK(ring.Snapshot(6).records.empty());
  CHECK(ring.Snapshot(99).records.empty());
}

TEST_CASE("a ring without room is refused", "[trace]") {
  CHECK_THROWS_WITH(Ring(0), "ring capacity is 0, expected at least 1");
}

TEST_CASE("snapshots taken while the producer overwrites hold no torn record", "[trace]") {
  constexpr std::uint64_t kPushes = 2'000'000;
  Ring ring(2048);  // copying it takes long enough to be overtaken, on one core too
  std::thread producer([&ring] {
    for (std::uint64_t n = 0; n < kPushes; ++n) ring.Push(Numbered(n));
  });
  while (ring.num_pushed() < kPushes) {
    // From the oldest on: the very records that are overwritten next.
    const RingSnapshot snapshot = ring.Snapshot();
    for (std::size_t i = 0; i < snapshot.records.size(); ++i) {
      // Not REQUIRE on each: the check must be quick enough to meet the producer.
      if (snapshot.records[i] != Numbered(snapshot.first + i)) {
        producer.join();
        FAIL("record " << snapshot.first + i << " is torn");
      }
    }
  }
  producer.join();
  CHECK(ring.num_pushed() == kPushes);
}

}  // namespace
}  // namespace troupe
