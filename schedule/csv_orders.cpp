#include "schedule/csv_orders.hpp"

#include <set>

#include "schedule/action_table.hpp"

namespace troupe {

std::vector<DeviceOrder> ParseCsvOrders(const std::string& text) {
  const ActionTable table = ParseActionTable(text);
  std::set<int> split;
  for (const auto& row : table.rows) {
    for (const Action& action : row) {
      const bool part = action.kind == ActionKind::kInput || action.kind == ActionKind::kWeight;
      if (part) split.insert(action.stage);
    }
  }
  std::vector<DeviceOrder> orders;
  for (const auto& row : table.rows) {
    DeviceOrder& order = orders.emplace_back();
    for (const Action& action : row) {
      if (!Computes(action.kind)) continue;  // stages move tensors automatically
      const PassKind kind = action.kind == ActionKind::kForward  ? PassKind::kForward
                            : action.kind == ActionKind::kWeight ? PassKind::kWeight
                                                                 : PassKind::kBackward;
      order.push_back({action.stage, {kind, action.unit}});
      if (action.kind != ActionKind::kBackward || !split.contains(action.stage)) continue;
      order.push_back({action.stage, {PassKind::kWeight, action.unit}});
    }
  }
  return orders;
}

std::string ToCsv(const std::vector<DeviceOrder>& orders) {
  std::set<int> split;
  for (const DeviceOrder& order : orders) {
    for (const StagePass& at : order) {
      if (at.pass.kind == PassKind::kWeight) split.insert(at.stage);
    }
  }
  std::string text;
  for (const DeviceOrder& order : orders) {
    std::string row;
    for (const StagePass& at : order) {
      std::string pass = ToString(at.pass);
      if (at.pass.kind == PassKind::kBackward && split.contains(at.stage)) pass.front() = 'I';
      row += (row.empty() ? "" : ",") + std::to_string(at.stage) + pass;
    }
    text += row + "\n";
  }
  return text;
}

}  // namespace troupe
