#include "cluster/places.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

using Places = std::vector<std::size_t>;

constexpr bool kSilent = true;

}  // namespace

TEST_CASE("with room for all no process loses a place") {
  const std::vector<Occupant> all = {{0, kSilent}, {0, !kSilent}, {1, kSilent}};
  CHECK(ChooseEvicted(all, {3, 2}).empty());
  CHECK(ChooseEvicted({}, {3, 2}).empty());
}

TEST_CASE("an address with more than its share loses its oldest silent connections first") {
  const std::vector<Occupant> all = {
      {0, !kSilent}, {0, kSilent}, {1, kSilent}, {0, kSilent}, {0, !kSilent}};
  CHECK(ChooseEvicted(all, {9, 3}) == Places{1});
  CHECK(ChooseEvicted(all, {9, 2}) == Places{1, 3});
  CHECK(ChooseEvicted(all, {9, 1}) == Places{0, 1, 3});
}

TEST_CASE("one address cannot take the places of another") {
  std::vector<Occupant> all(100, {7, !kSilent});
  all.insert(all.begin(), {3, kSilent});
  const auto evicted = ChooseEvicted(all, {50, 50});
  CHECK(evicted.size() == 51);
  CHECK(evicted.front() == 1);
}

TEST_CASE("with more addresses than places the silent go first, the oldest of them first") {
  const std::vector<Occupant> all = {{0, !kSilent}, {1, kSilent}, {2, kSilent}, {3, !kSilent}};
  CHECK(ChooseEvicted(all, {3, 1}) == Places{1});
  CHECK(ChooseEvicted(all, {1, 1}) == Places{0, 1, 2});
}

TEST_CASE("a process with few descriptors has fewer places, but never none") {
  CHECK(PlacesFor(1 << 20, 4).total == 4096);
  CHECK(PlacesFor(1 << 20, 4).per_source == 2048);
  CHECK(PlacesFor(DescriptorsFor(100, 4), 4).total == 100);
  CHECK(PlacesFor(DescriptorsFor(100, 4), 4).per_source == 50);
  CHECK(PlacesFor(64, 4).total == 16);
}
