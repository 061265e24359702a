// A word while its symbols are merged.
#pragma once

#include <cstdint>
#include <vector>

#include "data/text/bpe/pair_table.hpp"

namespace troupe::bpe {

/// A token of a word, and its bytes in the word.
struct Symbol {
  std::uint32_t id = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  ///< begin == end: merged into the symbol before it
  std::int32_t before = -1;
  std::int32_t after = -1;
};

class MergeSpace {
 public:
  void Clear() { symbols_.clear(); }
  void Add(std::uint32_t id, std::uint32_t begin, std::uint32_t end);
  Symbol& last() { return symbols_.back(); }
  bool empty() const { return symbols_.empty(); }

  /// Merges until no pair of neighbours is in `table`. Of equal ranks, the first merges first.
  void MergeAll(const PairTable& table);
  /// In order; those that were merged into another one are empty.
  const std::vector<Symbol>& symbols() const { return symbols_; }

 private:
  /// A pair that may merge, unless one of its symbols has changed since.
  struct Candidate {
    std::uint32_t rank = 0;
    std::int32_t left = 0;
    std::uint32_t id = 0;
    /// A heap keeps its largest entry in front.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
    }
  };

  void Note(const PairTable& table, std::int32_t left);
  void Join(std::int32_t left, std::uint32_t id);

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace troupe::bpe
