#include "schedule/schedule.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "layout/at.hpp"
#include "schedule/action_table.hpp"

namespace troupe {
namespace {

std::string Where(std::size_t device, const StagePass& at) {
  return "rank " + std::to_string(device) + ": " + ToString(at.pass) + " of stage " +
         std::to_string(at.stage);
}

/// The reason why `pass` may not follow the passes counted in `c`; empty: it may.
std::string WhyNotNext(const StageCounters& c, const Pass& pass) {
  const Pass next = NextOf(pass.kind, c);
  if (pass != next) return "expected " + ToString(next) + " first, as units go in order";
  if (pass.kind == PassKind::kBackward && c.forwards <= pass.unit) return "its forward comes later";
  if (pass.kind == PassKind::kWeight && c.backwards <= pass.unit) return "its backward comes later";
  return "";
}

}  // namespace

Schedule OneForwardOneBackward(const std::vector<std::int64_t>& limits) {
  Schedule schedule;
  for (const std::int64_t limit : limits) schedule.rules.push_back({.limit = limit});
  return schedule;
}

std::vector<StageRule> ZbH1Rules(const std::vector<std::int64_t>& limits) {
  std::vector<StageRule> rules;
  const std::int64_t largest = limits.empty() ? 1 : std::ranges::max(limits);
  for (const std::int64_t limit : limits) {
    rules.push_back({.kind = RuleKind::kZbH1,
                     .limit = limit,
                     .weight_limit = largest,
                     .splits_backward = true});
  }
  return rules;
}

std::vector<DeviceOrder> InterleavedOrders(int pp, int chunks, std::int64_t microbatches) {
  if (pp < 1 || chunks < 1 || microbatches < 1 || microbatches % pp != 0) {
    throw std::invalid_argument("interleaved: expected a multiple of " + std::to_string(pp) +
                                " microbatches and chunks of at least 1, got " +
                                std::to_string(microbatches) + " microbatches, " +
                                std::to_string(chunks) + " chunks");
  }
  const std::int64_t total = microbatches * chunks;
  const std::int64_t turn = static_cast<std::int64_t>(pp) * chunks;
  std::vector<DeviceOrder> orders(At(pp));
  for (int rank = 0; rank < pp; ++rank) {
    DeviceOrder& order = orders[At(rank)];
    const auto add = [&](PassKind kind, std::int64_t k) {
      const auto chunk = static_cast<int>(k % turn / pp);
      const int along = kind == PassKind::kForward ? chunk : chunks - 1 - chunk;
      order.push_back({along * pp + rank, {kind, k / turn * pp + k % pp}});
    };
    const std::int64_t warmup =
        std::min<std::int64_t>(total, (pp - rank - 1) * 2 + (chunks - 1) * pp);
    for (std::int64_t k = 0; k < warmup; ++k) add(PassKind::kForward, k);
    for (std::int64_t k = 0; k < total; ++k) {
      if (warmup + k < total) add(PassKind::kForward, warmup + k);
      add(PassKind::kBackward, k);
    }
  }
  return orders;
}

StageRule OrderedRule(const DeviceOrder& order, int stage) {
  StageRule rule{.kind = RuleKind::kOrdered};
  for (const StagePass& at : order) {
    if (at.stage != stage) continue;
    rule.order.push_back(at.pass);
    rule.splits_backward = rule.splits_backward || at.pass.kind == PassKind::kWeight;
  }
  return rule;
}

std::string WhyNoOrders(const std::vector<DeviceOrder>& orders, int stages,
                        std::int64_t microbatches) {
  const auto pp = orders.size();
  std::vector<StageCounters> counters(At(stages));
  for (std::size_t device = 0; device < pp; ++device) {
    for (const StagePass& at : orders[device]) {
      const auto stage = At(at.stage);
      if (at.stage < 0 || at.stage >= stages) {
        return Where(device, at) + ": expected a stage below " + std::to_string(stages);
      }
      if (stage % pp != device) {
        return Where(device, at) + ": that stage is on rank " + std::to_string(stage % pp);
      }
      if (at.pass.unit < 0 || at.pass.unit >= microbatches) {
        return Where(device, at) + ": expected a microbatch below " + std::to_string(microbatches);
      }
      const std::string why = WhyNotNext(counters[stage], at.pass);
      if (!why.empty()) return Where(device, at) + ": " + why;
      CountStarted(counters[stage], at.pass);
    }
  }
  for (std::size_t stage = 0; stage < counters.size(); ++stage) {
    const StageCounters& c = counters[stage];
    const bool whole = c.forwards == microbatches && c.backwards == microbatches &&
                       (c.weights == 0 || c.weights == microbatches);
    if (whole) continue;
    return "stage " + std::to_string(stage) + ": expected " + std::to_string(microbatches) +
           " forwards and backwards, and as many weights or none, got " +
           std::to_string(c.forwards) + ", " + std::to_string(c.backwards) + " and " +
           std::to_string(c.weights);
  }
  return "";
}

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

}  // namespace troupe
