// Which pairs of tokens merge: a hash table without removal, made for look-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::bpe {

/// Two neighbouring tokens become one. Lower ranks merge first.
struct Merge {
  std::uint32_t rank = 0;
  std::uint32_t id = 0;  ///< of the joined token
};

class PairTable {
 public:
  PairTable() : PairTable(0) {}
  /// Has room for `count` pairs.
  explicit PairTable(std::size_t count) {
    std::size_t size = 16;
    while (size < 2 * count) size *= 2;
    entries_.resize(size);
  }

  /// A later merge of the same pair replaces the earlier one.
  void Add(std::uint32_t left, std::uint32_t right, Merge merge) {
    Entry& entry = entries_[PlaceOf(KeyOf(left, right))];
    entry = {KeyOf(left, right), merge};
  }

  /// Null: the pair does not merge.
  const Merge* Find(std::uint32_t left, std::uint32_t right) const {
    const Entry& entry = entries_[PlaceOf(KeyOf(left, right))];
    return entry.key == kEmpty ? nullptr : &entry.merge;
  }

 private:
  /// No token has this id twice: ids end far below.
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t key = kEmpty;
    Merge merge;
  };

  static std::uint64_t KeyOf(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32U | right;
  }
  /// Returns the place of `key`, or the free one where it would be.
  std::size_t PlaceOf(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29U;
    const std::size_t mask = entries_.size() - 1;
    std::size_t place = static_cast<std::size_t>(hash) & mask;
    while (entries_[place].key != key && entries_[place].key != kEmpty) place = (place + 1) & mask;
    return place;
  }

  std::vector<Entry> entries_;
};

}  // namespace troupe::bpe
