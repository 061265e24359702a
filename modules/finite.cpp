#include "modules/finite.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// x * 0 is 0 for every finite x and NaN otherwise, and a sum keeps a NaN: one pass at memory
/// speed, without a branch.
template <class T>
bool AllFinite(const T* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  T sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane] * T{0};
  }
  for (; i < count; ++i) sums[0] += values[i] * T{0};
  return std::none_of(std::begin(sums), std::end(sums), [](T sum) { return std::isnan(sum); });
}

std::string Place(const Buffer& buffer, bool nan, std::int64_t index) {
  const std::int64_t rows = std::max<std::int64_t>(buffer.num_rows(), 1);
  return std::string(nan ? "nan" : "inf") + " at row " +
         std::to_string(index / (buffer.num_elements() / rows));
}

/// bfloat16: an exponent of all ones is no number.
std::optional<std::string> SearchHalves(const Buffer& buffer) {
  const auto* const values = buffer.as<std::uint16_t>();
  const std::int64_t count = buffer.num_elements();
  const auto* const bad =
      std::find_if(values, values + count, [](auto x) { return (x & 0x7f80U) == 0x7f80U; });
  if (bad == values + count) return std::nullopt;
  return Place(buffer, (*bad & 0x7fU) != 0, bad - values);
}

template <class T>
std::optional<std::string> Search(const Buffer& buffer) {
  const T* values = buffer.as<T>();
  const std::int64_t count = buffer.num_elements();
  if (AllFinite(values, count)) return std::nullopt;
  const T* bad = std::find_if(values, values + count, [](T x) { return !std::isfinite(x); });
  return Place(buffer, std::isnan(*bad), bad - values);
}

}  // namespace

std::optional<std::string> NonFinite(const Buffer& buffer) {
  if (!buffer.defined() || buffer.num_elements() == 0) return std::nullopt;
  if (!buffer.on_host()) return std::nullopt;
  if (buffer.dtype() == DType::kBFloat16) return SearchHalves(buffer);
  if (buffer.dtype() == DType::kFloat32) return Search<float>(buffer);
  if (buffer.dtype() == DType::kFloat64) return Search<double>(buffer);
  return std::nullopt;
}

}  // namespace troupe
