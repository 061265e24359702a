#include "data/charsmap.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe {
namespace {

using ByteSpan = std::span<const std::byte>;

/// Room for the matches of one lookup in the library, which does not check it.
constexpr int kMaxMatches = 32;
/// Unicode's normalizations produce at most 33 bytes from one character.
constexpr std::size_t kMaxReplacement = 1000;

std::uint32_t WordAt(ByteSpan bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i)
    word |= std::to_integer<std::uint32_t>(bytes[at + i]) << 8 * i;
  return word;
}

// A unit of the trie. It represents the byte `label` that leads to it. The units of the next bytes
// c are at `base ^ c`, where base = the unit's index ^ offset. The unit at `base` holds the value
// if `has_leaf` is set.
std::uint32_t Label(std::uint32_t unit) { return unit & 0x800000ffU; }
bool HasLeaf(std::uint32_t unit) { return (unit >> 8U & 1U) != 0; }
std::uint32_t Offset(std::uint32_t unit) { return unit >> 10U << ((unit & 0x200U) >> 6U); }
std::uint32_t Value(std::uint32_t unit) { return unit & 0x7fffffffU; }

/// Visits depth first all bases that a lookup can reach.
class TrieWalk {
 public:
  TrieWalk(ByteSpan units, ByteSpan strings)
      : units_(units), strings_(strings), matches_(units.size() / 4, kUnseen) {}

  /// Returns the problem, or "".
  std::string Run() {
    Enter(Offset(Unit(0)));
    while (problem_.empty() && !path_.empty()) Step();
    return problem_;
  }

 private:
  static constexpr int kUnseen = -1;
  static constexpr int kOpen = -2;  ///< on the path

  struct Visit {
    std::uint32_t base = 0;
    std::uint32_t byte = 0;  ///< the next to visit; 256 after the last
    int matches = 0;         ///< maximum over all paths from here
  };

  std::uint32_t Unit(std::uint32_t index) const { return WordAt(units_, std::size_t{4} * index); }

  void Enter(std::uint32_t base) {
    // base ^ c is within the same 256 units for every byte c.
    if ((base | 0xffU) >= matches_.size()) {
      problem_ = "a step leads out of its trie";
      return;
    }
    matches_[base] = kOpen;
    path_.push_back({base, 0, 0});
  }

  void Step() {
    Visit& visit = path_.back();
    if (visit.byte == 256) {
      matches_[visit.base] = visit.matches;
      path_.pop_back();
      return;
    }
    const std::uint32_t index = visit.base ^ visit.byte;
    const std::uint32_t unit = Unit(index);
    const std::uint32_t next = index ^ Offset(unit);
    const bool reached = Label(unit) == visit.byte;
    // After its matches are counted, an entered base is visited again here.
    if (reached && (next >= matches_.size() || matches_[next] == kUnseen)) return Enter(next);
    if (reached) Follow(visit, next, HasLeaf(unit));
    ++visit.byte;
  }

  void Follow(Visit& visit, std::uint32_t next, bool leaf) {
    if (matches_[next] == kOpen) {
      problem_ = "its trie has a loop";
      return;
    }
    visit.matches = std::max(visit.matches, matches_[next] + (leaf ? 1 : 0));
    if (visit.matches > kMaxMatches) problem_ = "too many of its keys begin with one another";
    if (leaf) CheckValue(Value(Unit(next)));
  }

  void CheckValue(std::size_t value) {
    if (value >= strings_.size()) {
      problem_ = "a replacement is outside of it";
      return;
    }
    const ByteSpan rest = strings_.subspan(value);
    const ByteSpan longest = rest.first(std::min(rest.size(), kMaxReplacement + 1));
    if (std::ranges::find(longest, std::byte{0}) == longest.end()) {
      problem_ = "a replacement is longer than " + std::to_string(kMaxReplacement) + " bytes";
    }
  }

  ByteSpan units_;
  ByteSpan strings_;
  std::vector<int> matches_;  ///< by base: kUnseen, kOpen, or the maximum over all paths from it
  std::vector<Visit> path_;
  std::string problem_;
};

}  // namespace

std::string CharsmapProblem(ByteSpan charsmap) {
  if (charsmap.size() < 4) return "it is cut off";
  const std::size_t trie_bytes = WordAt(charsmap, 0);
  const ByteSpan rest = charsmap.subspan(4);
  if (trie_bytes < 4 || trie_bytes % 4 != 0) return "its trie has no whole units";
  if (trie_bytes >= rest.size()) return "its trie is larger than the table";
  if (rest.back() != std::byte{0}) return "its last replacement does not end";
  return TrieWalk(rest.first(trie_bytes), rest.subspan(trie_bytes)).Run();
}

}  // namespace troupe
