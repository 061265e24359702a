// Messages that begin and end the job and its rounds of microbatches: Director to stages, feeds,
// updates and phases. Every report is the answer to a request, so no actor needs the handle of the
// Director.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"
#include "messages/pipeline.hpp"
#include "trace/actor_id.hpp"

namespace troupe {

/// Run all rounds. Answered when the last one is complete and reported.
struct RunJob : NoFields {};
struct JobDone {
  Failure failure;              ///< the first one; empty: every round is complete
  std::int64_t num_silent = 0;  ///< other processes that have not confirmed the end
};
inline auto Fields(JobDone& x) { return std::tie(x.failure, x.num_silent); }

/// The abort signal has been raised.
struct JobFailed {
  Failure failure;
};
inline auto Fields(JobFailed& x) { return std::tie(x.failure); }

/// End the job early: complete the rounds that have begun, begin no more.
struct StopSoon : NoFields {};

/// Write a checkpoint after the step under way.
struct SaveSoon : NoFields {};

using Director = caf::typed_actor<caf::replies_to<RunJob>::with<JobDone>, caf::reacts_to<JobFailed>,
                                  caf::reacts_to<StopSoon>, caf::reacts_to<SaveSoon>>;

/// "step 4", "evaluation after step 3".
inline std::string RoundName(const Round& round) {
  return round.train ? "step " + std::to_string(round.step + 1)
                     : "evaluation after step " + std::to_string(round.step);
}
/// The error of `actor` about a round that is not the next one.
inline std::string WrongRound(const std::string& actor, std::int64_t expected, const Round& got) {
  return actor + ": expected round " + std::to_string(expected) + " from " +
         ToString(DirectorActor()) + ", got " + std::to_string(got.number);
}

struct RoundBegin {
  static constexpr RequestWords kWords{"beginning of the round", "report", WaitUnit::kRound};
  Round round;
};
inline auto Fields(RoundBegin& x) { return std::tie(x.round); }

/// A stage's answer to RoundBegin, once its last unit of the round is retired.
struct StageReport {
  std::int64_t round = 0;
  std::int64_t busy_ns = 0;  ///< summed over the stage's shards
  LossSums loss;
  std::vector<ReplacedItem> replaced = {};  ///< by Inputs::replaced
  std::vector<std::int64_t> own_ns = {};    ///< of the passes, by shard (messages/device.hpp)
  DataWait data = {};
};
inline auto Fields(StageReport& x) {
  return std::tie(x.round, x.busy_ns, x.loss, x.replaced, x.own_ns, x.data);
}

/// Inputs of one unit, from the Feed. Answered when the unit's forward has run; then the Feed may
/// send another.
struct Input {
  static constexpr RequestWords kWords{"input", "taking of the input", WaitUnit::kMicrobatch};
  std::int64_t unit = 0;
  std::shared_ptr<const Inputs> data;
  std::vector<std::string> samples = {};  ///< their ids, for errors; empty: unknown
  DataDelay delay = {};                   ///< of their preparation
};
inline auto Fields(Input& x) { return std::tie(x.unit, x.data, x.samples, x.delay); }
struct InputTaken {
  std::int64_t unit = 0;
};
inline auto Fields(InputTaken& x) { return std::tie(x.unit); }

/// From a stage to itself: the bytes of one shard of an activation or gradient have arrived in this
/// process.
struct ShardArrived {
  bool gradient = false;
  int link = 0;  ///< incoming for an activation, outgoing for a gradient
  std::int64_t unit = 0;
  int shard = 0;
  Buffer buffer;
  bool asked = false;  ///< as in SliceArrived
};
inline auto Fields(ShardArrived& x) {
  return std::tie(x.gradient, x.link, x.unit, x.shard, x.buffer, x.asked);
}

/// From a stage to itself, in virtual time: all messages of this instant are handled; decide.
struct DecideNow : NoFields {};

using Stage = Downstream::extend<caf::replies_to<RoundBegin>::with<StageReport>,
                                 caf::replies_to<Input>::with<InputTaken>,
                                 caf::reacts_to<ShardArrived>, caf::reacts_to<DecideNow>>;

using Feed = caf::typed_actor<caf::reacts_to<RoundBegin>>;
using Phase = Downstream::extend<caf::reacts_to<RoundBegin>>;

/// From replica `dp` of `stage` to its Update: its last backward of `round` is done. Answered when
/// the parameters have stepped.
struct BackwardsDone {
  static constexpr RequestWords kWords{"last backward", "parameter update", WaitUnit::kRound};
  std::int64_t round = 0;
  int stage = 0;  ///< index in the StageGraph
  int dp = 0;
};
inline auto Fields(BackwardsDone& x) { return std::tie(x.round, x.stage, x.dp); }
struct Updated {
  std::int64_t round = 0;
};
inline auto Fields(Updated& x) { return std::tie(x.round); }

/// From the Director to an Update: this round ends in an optimizer step. Answered with this
/// update's share of the squared gradient norm once every replica's gradients are summed.
struct UpdateRound {
  static constexpr RequestWords kWords{"beginning of the update", "gradient norm",
                                       WaitUnit::kRound};
  std::int64_t round = 0;
  UpdateStep step;
  /// Do not step before ApplyUpdate: the coefficient is not known yet, or the step must wait.
  bool wait = false;
  int place = 0;  ///< index of this Update in ApplyUpdate::squared_norms
};
inline auto Fields(UpdateRound& x) { return std::tie(x.round, x.step, x.wait, x.place); }
struct SquaredNorm {
  std::int64_t round = 0;
  double value = 0.0;
  std::map<std::string, double> parts = {};  ///< the same, by module or projector
};
inline auto Fields(SquaredNorm& x) { return std::tie(x.round, x.value, x.parts); }

/// From the Director: the answers of the other Updates. It does not wait for the receiver's own
/// answer, so that the last Update to finish need not wait for this. Answered when the parameters
/// have stepped. Sent (and answered) also when the step did not wait.
struct ApplyUpdate {
  static constexpr RequestWords kWords{"clip coefficient", "parameter update", WaitUnit::kRound};
  std::int64_t round = 0;
  std::vector<double> squared_norms;  ///< by update; the receiver fills in its own
  double clip_norm = 0.0;             ///< 0: no clipping
  std::int64_t held_ns = 0;           ///< for which a mirror held it back
};
inline auto Fields(ApplyUpdate& x) {
  return std::tie(x.round, x.squared_norms, x.clip_norm, x.held_ns);
}
struct UpdateDone {
  std::int64_t round = 0;
  std::int64_t busy_ns = 0;
};
inline auto Fields(UpdateDone& x) { return std::tie(x.round, x.busy_ns); }

/// From the Director to an Update, before it can step in the next round: store the state after this
/// round's step. Answered when all shards of the Update are stored. May come several times for a round.
struct SaveState {
  static constexpr RequestWords kWords{nullptr, "checkpoint", WaitUnit::kRound};
  std::int64_t round = 0;
  SaveOrder order;
};
inline auto Fields(SaveState& x) { return std::tie(x.round, x.order); }
struct StateSaved {
  std::vector<SavedShard> shards;
  std::vector<SavedShard> made = {};  ///< mirrors that replicas have made
};
inline auto Fields(StateSaved& x) { return std::tie(x.shards, x.made); }

using Update = caf::typed_actor<
    caf::replies_to<BackwardsDone>::with<Updated>, caf::replies_to<UpdateRound>::with<SquaredNorm>,
    caf::replies_to<ApplyUpdate>::with<UpdateDone>, caf::replies_to<SaveState>::with<StateSaved>>;

}  // namespace troupe
