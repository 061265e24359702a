#include "data/text/sentencepiece_model.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
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

// Field numbers of sentencepiece_model.proto.
constexpr std::uint32_t kPiecesField = 1;
constexpr std::uint32_t kNormalizerField = 3;
constexpr std::uint32_t kDenormalizerField = 5;
constexpr std::uint32_t kCharsmapField = 2;   // of NormalizerSpec
constexpr std::uint32_t kPieceTextField = 1;  // of SentencePiece
constexpr std::uint32_t kPieceTypeField = 3;
constexpr std::uint32_t kUserDefined = 4;  // a SentencePiece.Type

/// The library's trie builder recurses once for each byte of a piece, and crashes at 400,000.
/// Trainers make pieces of up to 512 characters.
constexpr std::size_t kMaxPieceBytes = 4096;
/// Room for the matches of one lookup of user-defined pieces in the library, which does not check
/// it.
constexpr std::size_t kMaxNested = 64;

constexpr const char* kUnreadable = "could not read it as one";

enum class Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  Wire wire = Wire::kVarint;
  std::uint64_t value = 0;  ///< of a kVarint
  ByteSpan bytes;           ///< of a kBytes
};

/// The fields of one protocol buffer message, in order. Groups count as damage.
class WireFields {
 public:
  explicit WireFields(ByteSpan message) : rest_(message) {}

  /// Returns the next field; none at the end or after the first damage.
  std::optional<WireField> Next() {
    if (rest_.empty() || damaged_) return std::nullopt;
    const std::uint64_t tag = TakeVarint();
    WireField field{static_cast<std::uint32_t>(tag >> 3U), static_cast<Wire>(tag & 7U), 0, {}};
    // The library keeps 32 bits of a tag and would read a larger one as another field.
    damaged_ = damaged_ || tag > UINT32_MAX || field.number == 0;
    switch (field.wire) {
      case Wire::kVarint:
        field.value = TakeVarint();
        break;
      case Wire::kFixed64:
        Take(8);
        break;
      case Wire::kBytes:
        field.bytes = Take(TakeVarint());
        break;
      case Wire::kFixed32:
        Take(4);
        break;
      default:
        damaged_ = true;
    }
    return damaged_ ? std::nullopt : std::optional(field);
  }

  bool damaged() const { return damaged_; }

 private:
  std::uint64_t TakeVarint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const ByteSpan byte = Take(1);
      if (byte.empty()) return 0;
      value |= std::to_integer<std::uint64_t>(byte[0] & std::byte{0x7f}) << shift;
      if ((byte[0] & std::byte{0x80}) == std::byte{0}) return value;
    }
    damaged_ = true;
    return 0;
  }

  ByteSpan Take(std::uint64_t size) {
    damaged_ = damaged_ || size > rest_.size();
    if (damaged_) return {};
    const ByteSpan taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  ByteSpan rest_;
  bool damaged_ = false;
};

std::string ProblemOfNormalizer(ByteSpan spec) {
  WireFields fields(spec);
  bool seen = false;
  while (const auto field = fields.Next()) {
    if (field->number != kCharsmapField || field->wire != Wire::kBytes) continue;
    if (seen) return "got one with two normalization tables in one place";
    seen = true;
    if (field->bytes.empty()) continue;  // Text stays as it is.
    const std::string problem = CharsmapProblem(field->bytes);
    if (!problem.empty()) return "got one with a damaged normalization table: " + problem;
  }
  return fields.damaged() ? kUnreadable : "";
}

/// Checks one piece. Adds it to `user_defined` if it is user-defined.
std::string ProblemOfPiece(ByteSpan piece, std::vector<std::string_view>& user_defined) {
  WireFields fields(piece);
  std::string_view text;
  bool is_user_defined = false;
  while (const auto field = fields.Next()) {
    if (field->number == kPieceTextField && field->wire == Wire::kBytes) {
      text = {reinterpret_cast<const char*>(field->bytes.data()), field->bytes.size()};
      if (text.size() > kMaxPieceBytes) {
        return "got one with a piece of more than " + std::to_string(kMaxPieceBytes) + " bytes";
      }
    }
    // The library keeps 32 bits of a type.
    const bool is_type = field->number == kPieceTypeField && field->wire == Wire::kVarint;
    if (is_type && static_cast<std::uint32_t>(field->value) == kUserDefined) is_user_defined = true;
  }
  // The library ends user-defined pieces at a NUL.
  if (is_user_defined) user_defined.push_back(text.substr(0, text.find('\0')));
  return fields.damaged() ? kUnreadable : "";
}

/// Returns whether more than kMaxNested of `pieces` are prefixes of one of them.
bool NestTooDeep(std::vector<std::string_view> pieces) {
  std::ranges::sort(pieces);
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  std::vector<std::string_view> beginnings;  // each a prefix of the next
  for (const std::string_view piece : pieces) {
    while (!beginnings.empty() && !piece.starts_with(beginnings.back())) beginnings.pop_back();
    beginnings.push_back(piece);
    if (beginnings.size() > kMaxNested) return true;
  }
  return false;
}

}  // namespace

std::string ProblemOf(ByteSpan model) {
  WireFields fields(model);
  std::vector<std::string_view> user_defined;
  std::vector<std::uint32_t> normalizers;
  while (const auto field = fields.Next()) {
    if (field->wire != Wire::kBytes) continue;
    std::string problem;
    if (field->number == kPiecesField) problem = ProblemOfPiece(field->bytes, user_defined);
    if (field->number == kNormalizerField || field->number == kDenormalizerField) {
      // The library would merge them.
      if (std::ranges::count(normalizers, field->number) > 0) return "got one with a part twice";
      normalizers.push_back(field->number);
      problem = ProblemOfNormalizer(field->bytes);
    }
    if (!problem.empty()) return problem;
  }
  if (fields.damaged()) return kUnreadable;
  if (NestTooDeep(std::move(user_defined))) {
    return "got one in which more than " + std::to_string(kMaxNested) +
           " user-defined pieces begin with one another";
  }
  return {};
}

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
