// How much memory the stages and ranks of a job need: what `troupe check` shows and what the doctor
// measures a machine against.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "actors/job_plan.hpp"
#include "modules/memory_estimate.hpp"

namespace troupe {

/// Bytes on each of the stage's ranks, without what the process itself takes.
struct StageNeed {
  int stage = 0;
  std::vector<int> ranks;       ///< of all replicas, ascending
  StageMemory memory;           ///< its activations are those of one microbatch
  std::size_t activations = 0;  ///< of all that are kept at once
  /// Of `activations`, those that are gone by the time that offloaded state of the stages that feed
  /// this one begins to come back.
  std::size_t gone_at_restore = 0;
  std::size_t per_rank() const { return memory.state() + activations; }
};

/// In the order of the stages. None for those of synthetic modules, which hold nothing.
std::vector<StageNeed> StageNeeds(const JobPlan& plan);

/// Bytes by rank, of all its stages.
std::map<int, std::size_t> RankNeeds(const std::vector<StageNeed>& stages);

/// By rank, bytes of the host: all that a rank of backend "cpu" needs, and the copies that lie
/// beside where an encoder offloads; of a rank on a GPU these copies, or its parameters while they
/// are made, whichever is more.
std::map<int, std::size_t> HostNeeds(const Config& config, const std::vector<StageNeed>& stages);

/// By rank, how much lower the peak is than that where encoders offload state: they lend the
/// language model's activations room, and no more than those need or the state has.
std::map<int, std::size_t> RankSavings(const std::vector<StageNeed>& stages);

}  // namespace troupe
