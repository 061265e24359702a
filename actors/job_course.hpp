// What process 0 decides about a job and learns from it. Includes nothing of CAF, so that code which
// starts and watches jobs compiles without it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/slow_ranks.hpp"
#include "files/byte_source.hpp"
#include "modules/input_source.hpp"
#include "modules/stored_state.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {

/// The loss of one sink of the graph, summed over its replicas.
struct SinkLoss {
  std::string module;
  LossSums sums;

  /// Nats per valid token; 0 without any.
  double mean() const {
    return sums.tokens > 0 ? sums.loss / static_cast<double>(sums.tokens) : 0.0;
  }
};

/// The result of one round.
struct RoundResult {
  Round round;
  LossSums loss;                ///< of all sinks together
  std::vector<SinkLoss> sinks;  ///< one per module that computes a loss, in order of the stages
  double gradient_norm = 0.0;   ///< training: of all modules together, before clipping
  std::map<std::string, double> gradient_norms = {};  ///< the same, by module or projector
  double clip_coefficient = 1.0;
  double seconds = 0.0;       ///< since the round before was complete (or the job's start)
  double busy_seconds = 0.0;  ///< summed over ranks
  DataWait data = {};         ///< the longest of all stages
  std::set<ReplacedItem> replaced;

  /// The function that gradients are taken of: the sum of all losses, per valid token of the global
  /// batch. With several sinks it is the sum of their means.
  double objective() const { return loss.loss * round.loss_scale; }
};

/// Called by the Director, on its thread. An exception ends the job with its text.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnRound(const RoundResult& result) = 0;
  /// With `inspect`: every shard's reduced gradients, before the update; then all other tensors,
  /// after it. The pieces are live memory, valid during the call only.
  virtual void OnGradients(const Round&, const std::vector<TensorPiece>&) {}
  virtual void OnUpdated(const Round&, TensorKind, const std::vector<TensorPiece>&) {}
  /// Ranks of a process have become slow, as training step `step` of the run shows.
  virtual void OnSlow(std::int64_t /*step*/, const SlowProcess& /*slow*/) {}
  /// One line for the user; the job goes on.
  virtual void OnWarning(const std::string&) {}
  /// Before JobDone, on success: the final parameters, whose values may be in other processes.
  /// `fetch` fetches those of a piece, or of some of its rows, and blocks meanwhile.
  virtual void OnFinished(const std::vector<TensorPiece>&, const FetchPiece& fetch) {
    static_cast<void>(fetch);
  }
};

/// The rounds of a run: training steps with held-out evaluations between. nullopt after the last.
using RoundPlan = std::function<std::optional<Round>(std::int64_t number)>;

/// When checkpoints are written, and where. An exception of a function ends the job.
struct Checkpoints {
  /// Training steps between them. With both 0: only when the user ends the job early.
  std::int64_t every = 0;
  std::int64_t every_ns = 0;  ///< time between them, on this process's clock
  bool async = false;         ///< written while the run goes on
  std::string run_directory;  ///< on process 0's disk; others may have the same path on theirs
  LoadOrder resume;           ///< what to start from; its folder is empty: the initial values
  std::int64_t step = 0;      ///< training steps done then
  std::function<std::string(std::int64_t steps)>
      folder;  ///< of a new one; empty: write no checkpoints
  /// Returns the text of the manifest of a checkpoint whose shards are written.
  std::function<std::string(std::int64_t steps, const std::vector<SavedShard>& shards)> manifest;
  /// Returns the steps of the complete checkpoints on this disk.
  std::function<std::vector<std::int64_t>()> steps;
  std::function<void(std::int64_t steps)> completed;  ///< called when it is one
  std::function<void()> stored_between = {};  ///< called then if rounds follow; may be empty
  /// Called when all shards have read what they resume from; files that are not here are opened by
  /// `elsewhere`. May be empty.
  std::function<void(const std::vector<LoadedShard>& shards, const OpenElsewhere& elsewhere)>
      loaded;
  std::int64_t mirror_every = 0;  ///< training steps between mirrors in memory; 0: there are none
  /// The folder of the state after `steps` in memory (HeldFiles).
  std::function<std::string(std::int64_t steps)> held_folder;
};

/// The course of a job, which process 0 decides.
struct JobCourse {
  RoundPlan rounds;
  int rounds_ahead = 1;  ///< rounds begun before the current one is complete
  bool inspect = false;  ///< stop after every step and give all tensors to the observer
  Checkpoints checkpoints;
  std::shared_ptr<JobObserver> observer;
  std::function<void(int process)> replace = {};  ///< a slow one; may be empty
};

}  // namespace troupe
