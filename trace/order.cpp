#include "trace/order.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "layout/text.hpp"

namespace troupe {
namespace {

std::string TextOf(std::vector<const PassRecord*> passes, std::int64_t first_unit) {
  std::ranges::stable_sort(passes, {}, &PassRecord::begin_ns);
  return Listed(passes, " ", [&](const PassRecord* pass) {
    return ToString(pass->kind) + std::to_string(pass->unit - first_unit);
  });
}

}  // namespace

std::vector<PassOrder> PassOrders(std::span<const PassRecord> records, std::int64_t round) {
  using Device = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
  std::map<Device, std::vector<const PassRecord*>> devices;
  std::map<std::int32_t, std::int64_t> first_units;
  for (const PassRecord& record : records) {
    if (record.round != round || !IsPass(record.kind)) continue;
    devices[{record.stage, record.dp, record.rank}].push_back(&record);
    const auto first = first_units.try_emplace(record.stage, record.unit).first;
    first->second = std::min(first->second, record.unit);
  }
  std::vector<PassOrder> orders;
  for (const auto& [device, passes] : devices) {
    const auto [stage, dp, rank] = device;
    orders.push_back(
        {.stage = stage, .dp = dp, .rank = rank, .text = TextOf(passes, first_units[stage])});
  }
  return orders;
}

}  // namespace troupe
