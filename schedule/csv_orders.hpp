// Orders of ranks as PyTorch's pipelining writes them (torch.distributed.pipelining, schedules that
// are dumped to CSV): one row per rank, one entry per time slot.
//
//   0F3           forward of microbatch 3 on stage 0
//   0B3           backward
//   0I3, 0W3      its two parts: the gradients of the inputs, those of the weights
//   (blank)       a bubble
//   0SEND_F3, 0RECV_F3, 0SEND_B3, 0RECV_B3, 0UNSHARD, 0RESHARD, 0REDUCE_GRAD
//                 skipped: what they move, stages send of themselves
//
// docs/schedules.md has the whole story.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace troupe {

/// By rank. Where a stage has I or W anywhere, its B are written as their two parts, so that its
/// backwards are split throughout. Throws std::invalid_argument: "row 2, entry 5: expected ...,
/// got ...". Whether anybody can follow the orders is WhyNoOrders's question.
std::vector<DeviceOrder> ParseCsvOrders(const std::string& text);

/// The same as text, a row each, without blanks: what ParseCsvOrders reads.
std::string ToCsv(const std::vector<DeviceOrder>& orders);

}  // namespace troupe
