// What the passes of one stage take for any unit of work. Prices thousands of units of a step in the time of
// a few lists of operations, since all but what hides behind computation is linear in the work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/cost/stage_cost.hpp"

namespace troupe {

class StagePrice {
 public:
  /// `config` and `device` outlive it.
  StagePrice(const Config& config, const DeviceModel& device, std::string module, int pp);
  /// Returns CostOfStage for samples of several lengths, whose operations and collectives start once.
  PassCost Of(const std::vector<StepShape>& shapes) const;

 private:
  const Config& config_;
  const DeviceModel& device_;
  std::string module_;
  int pp_;
  bool linear_;    ///< no passes wait for a ring of keys and values, or for copies
  PassCost none_;  ///< of no work
  PassCost row_;   ///< of each token
  PassCost pair_;  ///< of each token and one that it sees
  PassCost label_;
  std::vector<std::pair<std::string, PassCost>> items_;  ///< by encoder: of each unit of length
};

}  // namespace troupe
