// Orders of ranks from a table of actions (action_table.hpp, the grammar of PyTorch's pipelining):
// its passes; what is sent, received and sharded, stages do of themselves.
//
// docs/schedules.md has the whole story.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace troupe {

/// By rank. Where a stage has I or W anywhere, its B are written as their two parts, so that its
/// backwards are split throughout. Throws std::invalid_argument: as ParseActionTable. Whether
/// anybody can follow the orders is WhyNoOrders's question.
std::vector<DeviceOrder> ParseCsvOrders(const std::string& text);

/// The same as text, a row each, without blanks: what ParseCsvOrders reads.
std::string ToCsv(const std::vector<DeviceOrder>& orders);

}  // namespace troupe
