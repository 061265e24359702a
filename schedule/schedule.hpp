// A whole schedule: the rule of every stage, which stages share a device, and the orders of devices
// that have one.
//
// Stages of one device (the virtual stages of an interleaved pipeline) decide each for itself; the
// device then runs what they ask for in the order they ask, or, if it has an order, in that order,
// which holds a command back until its turn.
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

/// What one device runs in every round, units counted from the round's first.
using DeviceOrder = std::vector<StagePass>;

struct Schedule {
  std::vector<StageRule> rules = {};     ///< by stage
  std::vector<bool> runs_backward = {};  ///< by stage; empty = all do
  std::vector<int> devices = {};         ///< by stage, from 0; empty = every stage has its own
  std::vector<DeviceOrder> orders = {};  ///< by device; empty = there are none; so may one be
  /// In simulations: how long a tensor takes over each link, in either direction; empty = no time.
  std::vector<std::int64_t> link_ns = {};
};

/// 1f1b on every stage, a device each. `limits` by stage.
Schedule OneForwardOneBackward(const std::vector<std::int64_t>& limits);

/// zb-h1 of the stages of one module with `limits`: the largest is what each may keep.
std::vector<StageRule> ZbH1Rules(const std::vector<std::int64_t>& limits);

/// Interleaved 1F1B of arXiv:2104.04473, as Megatron-LM runs it: `pp` devices with `chunks` stages
/// each, stage k on device k % pp. Device r begins with (pp - r - 1) * 2 + (chunks - 1) * pp
/// forwards, its stages in turns of pp units each, then alternates. By device, stages from 0.
/// Throws std::invalid_argument: `microbatches` not a multiple of `pp`, anything below 1.
std::vector<DeviceOrder> InterleavedOrders(int pp, int chunks, std::int64_t microbatches);

/// The part of `order` that is `stage`'s, as a rule.
StageRule OrderedRule(const DeviceOrder& order, int stage);

/// Empty, or why `orders` are none of `pp` devices with stage k of `stages` on device k % pp and
/// `microbatches` units: a pass on the wrong device, missing, given twice or out of turn.
std::string WhyNoOrders(const std::vector<DeviceOrder>& orders, int stages,
                        std::int64_t microbatches);

}  // namespace troupe
