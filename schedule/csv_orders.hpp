// Reads orders of ranks from a table of actions (action_table.hpp, the grammar of PyTorch's
// pipelining). Uses only its passes; stages send, receive and shard automatically. See
// docs/schedules.md.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace troupe {

/// By rank. If a stage has I or W anywhere, its B become I and W, so that all its backwards are
/// split. Throws std::invalid_argument like ParseActionTable. WhyNoOrders checks the orders
/// themselves.
std::vector<DeviceOrder> ParseCsvOrders(const std::string& text);

/// The text that ParseCsvOrders reads: one row per order, without blanks.
std::string ToCsv(const std::vector<DeviceOrder>& orders);

}  // namespace troupe
