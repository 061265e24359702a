// Writes orders as tables that ParseCsvOrders reads.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace troupe {

/// One row per order, without blanks.
inline std::string ToCsv(const std::vector<DeviceOrder>& orders) {
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
