#include "trace/order.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

namespace troupe {

namespace {

bool IsPass(const PassRecord& record, std::int64_t round) {
  return record.round == round &&
         (record.kind == WorkKind::kForward || record.kind == WorkKind::kBackward ||
          record.kind == WorkKind::kWeight);
}

std::string TextOf(std::vector<const PassRecord*> passes, std::int64_t first_unit) {
  std::stable_sort(passes.begin(), passes.end(), [](const PassRecord* a, const PassRecord* b) {
    return a->begin_ns < b->begin_ns;
  });
  std::string text;
  for (const PassRecord* pass : passes) {
    if (!text.empty()) text += ' ';
    text += ToString(pass->kind) + std::to_string(pass->unit - first_unit);
  }
  return text;
}

const std::string& NameOf(std::int32_t stage, std::span<const std::string> stage_names) {
  if (stage < 0 || static_cast<std::size_t>(stage) >= stage_names.size()) {
    throw std::out_of_range("stage " + std::to_string(stage) + " has no name, there are " +
                            std::to_string(stage_names.size()));
  }
  return stage_names[static_cast<std::size_t>(stage)];
}

/// `name` is padded so that the orders of all stages begin in one column.
std::string FormatStage(std::span<const PassOrder> devices, std::string name, std::size_t width) {
  const std::string& text = devices.front().text;
  if (std::all_of(devices.begin(), devices.end(),
                  [&](const PassOrder& order) { return order.text == text; })) {
    name.resize(std::max(width, name.size()), ' ');
    return name + "  " + text + "\n";
  }
  std::string lines;
  for (const PassOrder& order : devices) {
    lines += name + " dp" + std::to_string(order.dp) + " rank " + std::to_string(order.rank) +
             "  " + order.text + "\n";
  }
  return lines;
}

}  // namespace

std::vector<PassOrder> PassOrders(std::span<const PassRecord> records, std::int64_t round) {
  using Device = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
  std::map<Device, std::vector<const PassRecord*>> devices;
  std::map<std::int32_t, std::int64_t> first_units;
  for (const PassRecord& record : records) {
    if (!IsPass(record, round)) continue;
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

std::string FormatOrders(std::span<const PassOrder> orders,
                         std::span<const std::string> stage_names) {
  std::string text;
  std::size_t width = 0;
  for (const PassOrder& order : orders) {
    width = std::max(width, NameOf(order.stage, stage_names).size());
  }
  for (std::size_t begin = 0; begin < orders.size();) {
    std::size_t end = begin;
    while (end < orders.size() && orders[end].stage == orders[begin].stage) ++end;
    text += FormatStage(orders.subspan(begin, end - begin),
                        NameOf(orders[begin].stage, stage_names), width);
    begin = end;
  }
  return text;
}

}  // namespace troupe
