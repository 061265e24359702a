#include "data/text/bpe/merge_space.hpp"

#include <algorithm>

namespace troupe::bpe {

static std::size_t Index(std::int32_t place) { return static_cast<std::size_t>(place); }

void MergeSpace::Add(std::uint32_t id, std::uint32_t begin, std::uint32_t end) {
  const auto place = static_cast<std::int32_t>(symbols_.size());
  if (place > 0) symbols_.back().after = place;
  symbols_.push_back({id, begin, end, place - 1, -1});
}

void MergeSpace::Note(const PairTable& table, std::int32_t left) {
  const Symbol& symbol = symbols_[Index(left)];
  const Merge* merge = table.Find(symbol.id, symbols_[Index(symbol.after)].id);
  if (merge == nullptr) return;
  heap_.push_back({merge->rank, left, merge->id});
  std::push_heap(heap_.begin(), heap_.end());
}

void MergeSpace::Join(std::int32_t left, std::uint32_t id) {
  Symbol& symbol = symbols_[Index(left)];
  Symbol& next = symbols_[Index(symbol.after)];
  symbol.id = id;
  symbol.end = next.end;
  symbol.after = next.after;
  next.begin = next.end;
  if (symbol.after >= 0) symbols_[Index(symbol.after)].before = left;
}

void MergeSpace::MergeAll(const PairTable& table) {
  heap_.clear();
  for (std::int32_t left = 0; left + 1 < std::ssize(symbols_); ++left) Note(table, left);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    const Symbol& symbol = symbols_[Index(best.left)];
    if (symbol.begin == symbol.end || symbol.after < 0) continue;
    const Merge* merge = table.Find(symbol.id, symbols_[Index(symbol.after)].id);
    if (merge == nullptr || merge->id != best.id) continue;
    Join(best.left, best.id);
    if (symbol.before >= 0) Note(table, symbol.before);
    if (symbol.after >= 0) Note(table, best.left);
  }
}

}  // namespace troupe::bpe
