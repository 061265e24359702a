// The end of a step for one pipeline stage of one module, all its replicas together.
//   receives  UpdateRound{r}    from the Director; answers SquaredNorm when gradients are reduced
//             BackwardsDone{r}  from each stage replica; answers Updated when parameters stepped
//             ApplyUpdate{r}    from the Director, the norms of the others; answers UpdateDone when
//                               parameters stepped
//             SaveState{r}      from the Director, before the next step can begin; answers
//                               StateSaved when the state after step r is stored
//   sends     ReduceGradients, then UpdateParameters, to every shard of every replica; CopyState,
//             then SaveShard, likewise
//
//   reduce    when UpdateRound and BackwardsDone of all replicas have arrived
//   step      when reduced, no shard is being copied, and ApplyUpdate has arrived or the round does
//             not wait for it
//   copy      when stepped in the round of a SaveState, once; save when copied, concurrently with later
//             rounds
//
// ApplyUpdate is sent as soon as all other Updates have reduced, so the last one of a round steps
// without waiting; each computes the coefficient itself.
//
// The reduction spans replicas, so it is one command for all of them: as separate commands it could
// interleave with other collectives of shared ranks and hang. A tied embedding couples the first
// and the last stage of a module: those share one Update.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/device.hpp"
#include "messages/round.hpp"

namespace troupe {

struct UpdateConfig {
  std::string name;                         ///< "update of language.s0", after its first stage
  std::vector<std::pair<int, int>> shards;  ///< (rank, stage index) of every shard that takes part
  std::vector<ActorId> replicas;            ///< stage actors that will send BackwardsDone
  LockStep devices;
  std::shared_ptr<AbortSignal> abort;
};

struct UpdateState {
  static constexpr const char* name = "update";
  enum class Progress { kBackward, kReducing, kReduced, kStepping, kStepped };

  UpdateConfig config;
  Progress progress = Progress::kBackward;
  struct Applying {
    ApplyUpdate apply;
    Promise<UpdateDone> promise;
  };

  std::optional<UpdateRound> round;           ///< the current one, once the Director has begun it
  double squared_norm = 0.0;                  ///< once reduced
  std::int64_t reduced_ns = 0;                ///< when it was
  std::int64_t backwards_round = -1;          ///< of the latest BackwardsDone
  std::map<std::int64_t, Applying> applying;  ///< by round; may be ahead of the current one
  std::int64_t busy_ns = 0;
  struct Saving {
    SaveOrder order;
    Promise<StateSaved> promise;
  };
  std::multimap<std::int64_t, Saving> saving;  ///< by round: states to store
  std::int64_t stepped_round = -1;             ///< the latest; -1: none, the state is the first
  std::int64_t copied_round = -2;              ///< whose state was copied last; -2: none
  bool copying = false;                        ///< it may not step
  std::int64_t held_since_ns = 0;  ///< when `copying` began to hold back a step; 0: it does not
  Promise<SquaredNorm> norm;
  std::map<std::pair<int, int>, Promise<Updated>> replicas;  ///< by stage and replica
  /// Rounds that begin before the current one is over.
  std::deque<std::pair<UpdateRound, Promise<SquaredNorm>>> next;
};

Update::behavior_type RunUpdate(ActorPointer<Update, UpdateState> self, UpdateConfig config);

}  // namespace troupe
