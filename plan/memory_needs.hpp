// Computes the memory that the stages and ranks of a job need. `troupe check` prints it, and the
// doctor compares it with the machine.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plan/job_plan.hpp"
#include "plan/memory_estimate.hpp"

namespace troupe {

/// Bytes on each rank of the stage, without the memory of the process itself.
struct StageNeed {
  int stage = 0;
  std::vector<int> ranks;       ///< of all replicas, ascending
  StageMemory memory;           ///< with the activations of one microbatch
  std::size_t activations = 0;  ///< activations of all units kept at once
  /// The part of `activations` that is released before the offloaded state of the stages that feed
  /// this one begins to come back.
  std::size_t gone_at_restore = 0;
  std::size_t per_rank() const { return memory.state() + activations; }
};

/// Returns the needs in the order of the stages. Synthetic modules hold nothing and have none.
std::vector<StageNeed> StageNeeds(const JobPlan& plan, AttentionKeeps attention);

/// Returns bytes by rank, over all its stages.
std::map<int, std::size_t> RankNeeds(const std::vector<StageNeed>& stages);

/// Returns host bytes by rank. A rank of backend "cpu" has all its needs on the host, and in
/// addition the copies of offloaded encoders. A rank on a GPU has these copies, or its parameters
/// while they are created, whichever is larger.
std::map<int, std::size_t> HostNeeds(const Config& config, const std::vector<StageNeed>& stages);

/// Returns by rank how much offloading lowers the peak. The language model's activations use the
/// room of the offloaded state, so this is the smaller of the two.
std::map<int, std::size_t> RankSavings(const std::vector<StageNeed>& stages);

}  // namespace troupe
