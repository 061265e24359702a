#include "checkpoint/tensor_file.hpp"

#include <algorithm>
#include <tuple>

#include "files/strict_json.hpp"

namespace troupe {

const TensorEntry* FindEntry(const std::vector<TensorEntry>& entries, const std::string& name) {
  const auto found = std::ranges::find(entries, name, &TensorEntry::name);
  return found == entries.end() ? nullptr : &*found;
}

void SortByPlace(std::vector<TensorEntry>& entries) {
  std::ranges::sort(entries, {}, [](const TensorEntry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  });
}

std::string TensorTitle(const std::string& name) { return "tensor " + QuoteText(name); }

// A size of 0 counts as 1 for the overflow check: the product must not overflow in any order of
// multiplication.
std::uint64_t CheckedBytes(const TensorEntry& entry) {
  auto bound = static_cast<std::int64_t>(SizeOf(entry.type));
  bool empty = false;
  for (const std::int64_t size : entry.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bound, std::max<std::int64_t>(size, 1), &bound)) {
      FailReading(TensorTitle(entry.name) + " has a shape of more than 2^63 - 1 bytes");
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(bound);
}

}  // namespace troupe
