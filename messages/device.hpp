// The commands of devices. A device runs them in the order given and never decides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"

namespace troupe {

// Every command names the stage whose shard on this device it is for (its index in the StageGraph)
// and the round it belongs to; every answer holds the time that the device was busy. `own_ns` is the part
// of it in which the device did not wait for other ranks or processes; on GPUs all of it.

struct RunForward {
  static constexpr RequestWords kWords{nullptr, "forward", WaitUnit::kMicrobatch};
  int stage = 0;
  std::int64_t round = 0;
  ForwardPass pass;
  UnitPlace place = {};                   ///< of the unit, for errors, as in all commands
  std::vector<std::string> samples = {};  ///< their ids, for errors; empty: unknown
};
inline auto Fields(RunForward& x) { return std::tie(x.stage, x.round, x.pass, x.place, x.samples); }
struct ForwardDone {
  std::int64_t busy_ns = 0;
  ForwardResult result;
  std::int64_t own_ns = 0;
};
inline auto Fields(ForwardDone& x) { return std::tie(x.busy_ns, x.result, x.own_ns); }

struct RunBackward {
  static constexpr RequestWords kWords{nullptr, "backward", WaitUnit::kMicrobatch};
  int stage = 0;
  std::int64_t round = 0;
  BackwardPass pass;
  UnitPlace place = {};
  std::vector<std::string> samples = {};
};
inline auto Fields(RunBackward& x) {
  return std::tie(x.stage, x.round, x.pass, x.place, x.samples);
}
struct BackwardDone {
  std::int64_t busy_ns = 0;
  BackwardResult result;
  std::int64_t own_ns = 0;
};
inline auto Fields(BackwardDone& x) { return std::tie(x.busy_ns, x.result, x.own_ns); }

/// The rest of a backward whose pass has `split_weights`.
struct RunBackwardWeights {
  static constexpr RequestWords kWords{nullptr, "weight gradients", WaitUnit::kMicrobatch};
  int stage = 0;
  std::int64_t round = 0;
  std::int64_t unit = 0;
  UnitPlace place = {};
};
inline auto Fields(RunBackwardWeights& x) { return std::tie(x.stage, x.round, x.unit, x.place); }
struct BackwardWeightsDone {
  std::int64_t busy_ns = 0;
  std::int64_t own_ns = 0;
};
inline auto Fields(BackwardWeightsDone& x) { return std::tie(x.busy_ns, x.own_ns); }

/// Sum the gradients over all ranks that hold the same parameters. Collective.
struct ReduceGradients {
  static constexpr RequestWords kWords{nullptr, "gradient reduction", WaitUnit::kRound};
  int stage = 0;
  std::int64_t round = 0;
  UnitPlace place = {};
};
inline auto Fields(ReduceGradients& x) { return std::tie(x.stage, x.round, x.place); }
struct GradientsReduced {
  std::int64_t busy_ns = 0;
  ReducedGradients result;
};
inline auto Fields(GradientsReduced& x) { return std::tie(x.busy_ns, x.result); }

struct UpdateParameters {
  static constexpr RequestWords kWords{nullptr, "parameter update", WaitUnit::kRound};
  int stage = 0;
  std::int64_t round = 0;
  UpdateStep step;
  std::int64_t held_ns = 0;  ///< for which it was held back by a snapshot
};
inline auto Fields(UpdateParameters& x) { return std::tie(x.stage, x.round, x.step, x.held_ns); }
struct ParametersUpdated {
  std::int64_t busy_ns = 0;
};
inline auto Fields(ParametersUpdated& x) { return std::tie(x.busy_ns); }

/// Move rows among the ranks of a colocated group. Collective over the whole group.
struct RunExchange {
  static constexpr RequestWords kWords{nullptr, "row exchange", WaitUnit::kWindow};
  int stage = 0;  ///< the encoder's last one, for the trace
  int group = 0;
  std::int64_t round = 0;
  std::int64_t unit = 0;
  std::shared_ptr<const ExchangePlan> plan;
  std::vector<Buffer> rows;  ///< this rank's rows, in consecutive pieces
  bool to_host = false;      ///< the answer's rows are in host memory
};
inline auto Fields(RunExchange& x) {
  return std::tie(x.stage, x.group, x.round, x.unit, x.plan, x.rows, x.to_host);
}
struct ExchangeDone {
  std::int64_t busy_ns = 0;
  Buffer rows;
};
inline auto Fields(ExchangeDone& x) { return std::tie(x.busy_ns, x.rows); }

/// Copy the state from the device while nothing of the shard runs; see StageProgram::Offload.
/// Answered when it has left; other commands run in the meantime.
struct OffloadState {
  static constexpr RequestWords kWords{nullptr, "offload of the encoder's state",
                                       WaitUnit::kWindow};
  int stage = 0;
  std::int64_t round = 0;
  std::int64_t unit = 0;  ///< window whose forward it follows
};
inline auto Fields(OffloadState& x) { return std::tie(x.stage, x.round, x.unit); }
struct StateOffloaded : NoFields {};

/// Copy it back. Answered when the shard's backward can run.
struct RestoreState {
  static constexpr RequestWords kWords{nullptr, "restore of the encoder's state",
                                       WaitUnit::kWindow};
  int stage = 0;
  std::int64_t round = 0;
  std::int64_t unit = 0;
  bool moments = false;  ///< the update comes next
};
inline auto Fields(RestoreState& x) { return std::tie(x.stage, x.round, x.unit, x.moments); }
struct StateRestored : NoFields {};

/// Return the tensors of one shard. They are the live memory: read them, do not keep them.
struct Inspect {
  static constexpr RequestWords kWords{nullptr, "inspection of the tensors", WaitUnit::kNone};
  int stage = 0;
  TensorKind kind = TensorKind::kParameter;
  bool stored_only = false;  ///< without those that a Hugging Face folder has
};
inline auto Fields(Inspect& x) { return std::tie(x.stage, x.kind, x.stored_only); }
struct Inspected {
  std::vector<TensorPiece> pieces;
};
inline auto Fields(Inspected& x) { return std::tie(x.pieces); }

/// Copy the shard's parameters and optimizer state to host memory, concurrently with its passes.
/// Answered when it is copied. No UpdateParameters may come before that.
struct CopyState {
  static constexpr RequestWords kWords{nullptr, "snapshot", WaitUnit::kNone};
  int stage = 0;
  std::int64_t step = 0;    ///< optimizer steps done
  std::int64_t round = -1;  ///< the next one
};
inline auto Fields(CopyState& x) { return std::tie(x.stage, x.step, x.round); }
struct StateCopied : NoFields {};

/// Write the shard's state to a checkpoint.
struct SaveShard {
  static constexpr RequestWords kWords{nullptr, "saving", WaitUnit::kNone};
  int stage = 0;
  SaveOrder order;
  std::int64_t round = -1;  ///< the one after the steps done
  /// Write the last copy, concurrently with all other commands. False: the state itself, while
  /// nothing else runs.
  bool copied = false;
};
inline auto Fields(SaveShard& x) { return std::tie(x.stage, x.order, x.round, x.copied); }
struct ShardStored {
  StoredShard stored;
  std::vector<SavedShard> made = {};  ///< the mirror of another shard, or none
};
inline auto Fields(ShardStored& x) { return std::tie(x.stored, x.made); }

struct LoadShard {
  static constexpr RequestWords kWords{nullptr, "loading", WaitUnit::kNone};
  int stage = 0;
  LoadOrder order;
};
inline auto Fields(LoadShard& x) { return std::tie(x.stage, x.order); }
struct ShardLoaded {
  LoadedShard loaded;
};
inline auto Fields(ShardLoaded& x) { return std::tie(x.loaded); }

/// From a device to itself: the oldest command on a lane of its queue has run.
struct WorkEnded {
  Lane lane = Lane::kCompute;
  std::string error;  ///< the underlying error; empty: it has not failed
};
inline auto Fields(WorkEnded& x) { return std::tie(x.lane, x.error); }

using Device = caf::typed_actor<
    caf::replies_to<RunForward>::with<ForwardDone>,
    caf::replies_to<RunBackward>::with<BackwardDone>,
    caf::replies_to<RunBackwardWeights>::with<BackwardWeightsDone>,
    caf::replies_to<ReduceGradients>::with<GradientsReduced>,
    caf::replies_to<UpdateParameters>::with<ParametersUpdated>,
    caf::replies_to<RunExchange>::with<ExchangeDone>,
    caf::replies_to<OffloadState>::with<StateOffloaded>,
    caf::replies_to<RestoreState>::with<StateRestored>, caf::replies_to<Inspect>::with<Inspected>,
    caf::replies_to<CopyState>::with<StateCopied>, caf::replies_to<SaveShard>::with<ShardStored>,
    caf::replies_to<LoadShard>::with<ShardLoaded>, caf::reacts_to<WorkEnded>>;

/// From a device to itself: move `number`, or a write, has run. Stays in its process.
struct StateMoved {
  std::int64_t number = 0;
  WorkTimes times;
};
inline auto Fields(StateMoved& x) {
  return std::tie(x.number, x.times.begin_ns, x.times.end_ns, x.times.error);
}

/// The same command to several ranks, as one decision.
template <class Command>
struct ToSet {
  std::vector<std::pair<int, Command>> parts;  ///< rank, its command
};
template <class Command>
auto Fields(ToSet<Command>& x) {
  return std::tie(x.parts);
}
/// `command` for every shard of `shards`: rank, index of its stage.
template <class Command>
ToSet<Command> ForShards(const std::vector<std::pair<int, int>>& shards, Command command) {
  ToSet<Command> set;
  for (const auto& [rank, stage] : shards) {
    command.stage = stage;
    set.parts.emplace_back(rank, command);
  }
  return set;
}
/// Their answers, in the order of the parts.
template <class Answer>
struct FromSet {
  std::vector<Answer> parts;
};
template <class Answer>
auto Fields(FromSet<Answer>& x) {
  return std::tie(x.parts);
}

/// Issues every command to all its ranks before the next one, so that ranks which share
/// collectives see them in one order.
using LockStep =
    caf::typed_actor<caf::replies_to<ToSet<RunForward>>::with<FromSet<ForwardDone>>,
                     caf::replies_to<ToSet<RunBackward>>::with<FromSet<BackwardDone>>,
                     caf::replies_to<ToSet<RunBackwardWeights>>::with<FromSet<BackwardWeightsDone>>,
                     caf::replies_to<ToSet<ReduceGradients>>::with<FromSet<GradientsReduced>>,
                     caf::replies_to<ToSet<UpdateParameters>>::with<FromSet<ParametersUpdated>>,
                     caf::replies_to<ToSet<RunExchange>>::with<FromSet<ExchangeDone>>,
                     caf::replies_to<ToSet<OffloadState>>::with<FromSet<StateOffloaded>>,
                     caf::replies_to<ToSet<RestoreState>>::with<FromSet<StateRestored>>,
                     caf::replies_to<ToSet<Inspect>>::with<FromSet<Inspected>>,
                     caf::replies_to<ToSet<CopyState>>::with<FromSet<StateCopied>>,
                     caf::replies_to<ToSet<SaveShard>>::with<FromSet<ShardStored>>,
                     caf::replies_to<ToSet<LoadShard>>::with<FromSet<ShardLoaded>>>;

}  // namespace troupe
