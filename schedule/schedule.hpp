// A whole schedule: the rule of every stage, the stages that share a device, and the orders of
// devices.
//
// Stages of one device (the virtual stages of an interleaved pipeline) decide independently. A
// device runs their passes in the order of the commands. If it has an order, it holds each command
// back until its turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/stage_rule.hpp"

namespace troupe {

/// A pass of one of the stages that share a device.
struct StagePass {
  int stage = 0;  ///< index in the StageGraph
  Pass pass;
  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// The passes of one device in every round, units counted from the round's first.
using DeviceOrder = std::vector<StagePass>;

struct Schedule {
  std::vector<StageRule> rules = {};     ///< by stage
  std::vector<bool> runs_backward = {};  ///< by stage; empty: all do
  /// By stage: the devices that each run all its passes, numbered from 0; empty: one per stage. A
  /// colocated encoder has those of all stages of the module that it feeds.
  std::vector<std::vector<int>> devices = {};
  /// By stage: microbatches of a unit, as those of a colocated encoder's window; 0: all of the round;
  /// empty: 1.
  std::vector<std::int64_t> windows = {};
  /// By device; empty, or an empty entry: no order. Stages that an order does not name have no part in
  /// it.
  std::vector<DeviceOrder> orders = {};
  /// In simulations: transit time over each link, in either direction; empty: no time.
  std::vector<std::int64_t> link_ns = {};

  /// Returns the devices of a stage.
  std::vector<int> DevicesOf(int stage) const {
    return devices.empty() ? std::vector<int>{stage} : devices.at(static_cast<std::size_t>(stage));
  }
};

/// 1f1b with one device per stage. `limits` by stage.
Schedule OneForwardOneBackward(const std::vector<std::int64_t>& limits);

/// zb-h1 for the stages of one module with `limits`: each stage may keep as many units as the
/// largest limit.
std::vector<StageRule> ZbH1Rules(const std::vector<std::int64_t>& limits);

/// Interleaved 1F1B of arXiv:2104.04473, as Megatron-LM runs it: `pp` devices with `chunks` stages
/// each, stage k on device k % pp. Device r begins with (pp - r - 1) * 2 + (chunks - 1) * pp
/// forwards, its stages in turns of pp units each, then alternates. By device, stages from 0.
/// Throws std::invalid_argument: `microbatches` not a multiple of `pp`, anything below 1.
std::vector<DeviceOrder> InterleavedOrders(int pp, int chunks, std::int64_t microbatches);

/// The passes of `stage` in `order`, as a rule.
StageRule OrderedRule(const DeviceOrder& order, int stage);

/// Returns why `orders` are not valid orders for one round of `microbatches` units, with stage k of
/// `stages` on device k % orders.size(): a pass on the wrong device, missing, given twice or out of
/// turn. Empty if they are valid.
std::string WhyNoOrders(const std::vector<DeviceOrder>& orders, int stages,
                        std::int64_t microbatches);

/// Reads orders by rank from a table of actions (action_table.hpp, the grammar of PyTorch's
/// pipelining). Uses only its passes; stages send, receive and shard automatically. If a stage has
/// I or W anywhere, its B become I and W, so that all its backwards are split. Throws
/// std::invalid_argument like ParseActionTable. WhyNoOrders checks the orders themselves.
std::vector<DeviceOrder> ParseCsvOrders(const std::string& text);

}  // namespace troupe
