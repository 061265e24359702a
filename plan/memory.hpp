// Estimates the memory that the stages and ranks of a job will need, from the configuration alone.
// `troupe check` prints it, and the doctor compares it with the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "layout/ids.hpp"
#include "plan/pass_memory.hpp"

namespace troupe {

class JobPlan;
class ProcessPlan;

/// Bytes on one rank of a stage: on the rank that holds most.
struct StageMemory {
  std::size_t parameters = 0;  ///< as in a checkpoint
  std::size_t rounded = 0;     ///< with bfloat16: their rounded copies, which multiply
  std::size_t gradients = 0;   ///< of the parts that train, in the type of the parameters
  std::size_t optimizer = 0;   ///< both Adam moments of the parts that train
  std::size_t offloaded = 0;   ///< the part of these four that leaves the device for a while
  std::size_t state() const { return parameters + rounded + gradients + optimizer; }
};

/// Returns the state of a stage, which is exact.
StageMemory EstimateMemory(const Config& config, const std::string& module, int pp);

/// The rows of a colocated encoder, and their gradients, that wait for passes of the module which they
/// feed: those of so many microbatches.
struct WaitingRows {
  std::int64_t on_device = 0;
  std::int64_t away = 0;  ///< in host memory
};
WaitingRows WaitingUnits(const Config& config, const EdgeConfig& edge, std::int64_t window);

/// Bytes on each rank of the stage, without the memory of the process itself.
struct StageNeed {
  int stage = 0;
  std::vector<int> ranks;  ///< of all replicas, ascending
  StageMemory memory;
  UnitMemory unit;  ///< of a microbatch, or of a window of a colocated encoder
  /// By rank: what it holds of the passes of this stage when it holds most of all its stages together.
  std::map<int, HeldByPasses> passes;
  std::size_t transit = 0;    ///< tensors that wait for a pass, or to be sent, and room for sums
  std::size_t away = 0;       ///< activations of all units kept at once, in host memory
  std::size_t rows = 0;       ///< of windows of colocated encoders, which wait for their forwards
  std::size_t rows_away = 0;  ///< others of these, in host memory
  /// By rank: the copies in host memory that checkpoints and mirrors are written from.
  std::map<int, std::size_t> snapshots;
  /// By rank: the files, in which frozen values are, too, unless a folder has them.
  std::map<int, std::size_t> files;
  /// The part of activations that is released before the offloaded state of the stages that feed
  /// this one begins to come back.
  std::size_t gone_at_restore = 0;
  HeldByPasses most() const;       ///< of `passes`, on the rank with most
  std::size_t on(int rank) const;  ///< on its device
  std::size_t per_rank() const { return memory.state() + rows + transit + most().total(); }
};

/// Returns the needs in the order of the stages. Synthetic modules hold nothing and have none.
std::vector<StageNeed> StageNeeds(const JobPlan& plan, const ProcessPlan& processes);

/// Returns bytes by rank, over all its stages.
std::map<int, std::size_t> RankNeeds(const std::vector<StageNeed>& stages);

/// Returns the snapshots by rank, over all its stages; only ranks that have any.
std::map<int, std::size_t> SnapshotNeeds(const std::vector<StageNeed>& stages);

/// Returns host bytes by rank. A rank of backend "cpu" has all its needs on the host, and in
/// addition the copies of offloaded encoders and activations. A rank on a GPU has these copies, or
/// its parameters while they are created, whichever is larger. Both have the snapshots, and the first rank
/// of a process the mirrors.
std::map<int, std::size_t> HostNeeds(const JobPlan& plan, const ProcessPlan& processes,
                                     const std::vector<StageNeed>& stages);

/// What mirrors in memory cost a process (checkpoint.replicas).
struct MirrorNeed {
  std::size_t sent = 0;  ///< bytes that it sends for each state
  /// Bytes of the files of two states: its own files, and those that it mirrors. With asynchronous
  /// checkpoints it also includes a second copy of the process's own state.
  std::size_t held = 0;
};
/// Returns the needs by process; empty without mirrors, or with one process.
std::map<ProcessId, MirrorNeed> MirrorNeeds(const JobPlan& plan, const ProcessPlan& processes,
                                            const std::vector<StageNeed>& stages);

/// Returns by rank how much offloading lowers the peak. The language model's activations use the
/// room of the offloaded state, so this is the smaller of the two.
std::map<int, std::size_t> RankSavings(const std::vector<StageNeed>& stages);

}  // namespace troupe
