#include "plan/bucket_order.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

/// The language model with both encoders inline: three parts with layers in one stage.
FlatLayout ThreeParts() {
  Config config = SmallModulesConfig();
  for (const std::size_t encoder : {0, 1}) config.modules[encoder].inline_in = "language";
  return {StageParameters(config, "language", 0), {.module = "language"}, {.dp = 2}, {{2, 1}, {}}};
}

using Buckets = std::vector<std::size_t>;

/// The gates of a forward, in its order.
std::vector<GatePlace> GatesOf(const FlatLayout& layout, const BucketOrder& order) {
  std::vector<GatePlace> gates;
  for (const std::size_t b : order.forward()) {
    const BucketKey& key = layout.buckets()[b].key;
    if (key.place == BucketPlace::kOutsideLayers) continue;
    gates.push_back(order.GateOf(key.part, key.place, key.layer));
  }
  return gates;
}

void Append(Buckets& all, const Buckets& more) { all.insert(all.end(), more.begin(), more.end()); }

}  // namespace

TEST_CASE("whichever gates a backward passes, in whichever order, buckets start in one order") {
  const FlatLayout layout = ThreeParts();
  std::vector<bool> late(layout.buckets().size(), false);
  late[1] = late[4] = late.back() = true;
  BucketOrder order(layout, late);
  Buckets expected = order.forward();
  std::ranges::reverse(expected);
  CHECK(std::set(expected.begin(), expected.end()).size() == layout.buckets().size());
  const std::vector<GatePlace> gates = GatesOf(layout, order);
  std::mt19937 random(7);
  int early = 0;
  for (int run = 0; run < 10'000; ++run) {
    Buckets started;
    std::set<std::size_t> complete;
    for (std::size_t passes = random() % (2 * gates.size()); passes > 0; --passes) {
      const GatePlace& gate = gates[random() % gates.size()];
      complete.insert(gate.complete.begin(), gate.complete.end());
      for (const std::size_t b : order.Leave(gate)) {
        if (!complete.contains(b) || late[b]) FAIL("bucket " << b << " started too early");
        started.push_back(b);
        ++early;
      }
    }
    Append(started, order.Finish());
    if (started != expected) FAIL("another order in run " << run);
  }
  CHECK(early > 10'000);
}

TEST_CASE("a layer's bucket starts when the backward is back before it") {
  const FlatLayout layout = ThreeParts();
  BucketOrder order(layout, std::vector<bool>(layout.buckets().size(), false));
  std::vector<GatePlace> gates = GatesOf(layout, order);
  std::ranges::reverse(gates);
  for (const GatePlace& gate : gates) {
    REQUIRE(gate.used.size() == 1);
    CHECK(order.Leave(gate) == gate.used);
  }
  for (const std::size_t b : order.Finish()) {
    CHECK(layout.buckets()[b].key.place == BucketPlace::kOutsideLayers);
  }
}

TEST_CASE("a gate is before its layer, and all that follows in its part is complete there") {
  const FlatLayout layout = ThreeParts();
  const BucketOrder order(layout, std::vector<bool>(layout.buckets().size(), false));
  const GatePlace gate = order.GateOf("language", BucketPlace::kInLayer, 2);
  REQUIRE(gate.used.size() == 1);
  CHECK(layout.buckets()[gate.used[0]].key.layer == 2);
  CHECK(gate.complete.size() == 3);  // layers 2 and 3, and the head
  for (const std::size_t b : gate.complete) CHECK(layout.buckets()[b].key.part == "language");
}

}  // namespace troupe
