#include "modules/dropout.hpp"

#include "layout/mix_bits.hpp"

namespace troupe {

static std::uint64_t Mixed(std::uint64_t before, std::int64_t value) {
  return MixBits(before ^ static_cast<std::uint64_t>(value));
}

std::uint32_t DropoutRow(std::uint64_t seed, std::int64_t step, std::int64_t sample,
                         std::int64_t row) {
  return static_cast<std::uint32_t>(Mixed(Mixed(Mixed(MixBits(seed), step), sample), row));
}

std::uint32_t DropoutFeature(std::string_view adapter, std::int64_t feature) {
  std::uint64_t name = 0;
  for (const char c : adapter) name = Mixed(name, c);
  return static_cast<std::uint32_t>(Mixed(name, feature));
}

}  // namespace troupe
