// The order of a set of ranks that share collectives.
//   receives  ToSet<Command>: the same command for several ranks
//   sends     each rank's Command to its Device, all of one set before any of the next
//   answers   FromSet<Answer> when all have answered, or the first error
//
// Why: a collective hangs when two ranks run two commands in different orders. Stages that share
// ranks (a colocated encoder and the language model, the replicas of one stage at their gradient
// reduction) therefore send every command through the same LockStep. The commands then have one
// total order; each device runs its part of it in that order, so the oldest unfinished command can
// always finish. One per set of ranks connected by such sharing.
//
// Where a rank has an order (virtual stages), a pass of a round with backwards is held back until
// the passes before it in the order have been sent; all other commands are sent immediately. A
// stage's passes arrive in the stage's own order, so the next of its kind is the one that the order
// means.
//
// Replicas of a stage that share experts meet in the middle of each forward and backward. A pass of theirs
// is held back until all of them have sent it, and then all are sent at once. So the oldest unfinished
// pass can always finish here, too. The weights' part of a split backward follows in the same way.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/device.hpp"
#include "schedule/schedule.hpp"

namespace troupe {

struct LockStepOrder {
  DeviceOrder order;
  std::map<int, ActorId> stages;  ///< by stage of the order: the actor that commands it
};

/// A stage of several replicas that share experts.
struct LockStepReplicas {
  std::vector<int> first_ranks;  ///< of each replica
  std::vector<ActorId> stages;   ///< the actor that commands it
};

struct LockStepConfig {
  std::map<int, Device> devices;        ///< by rank
  std::map<int, LockStepOrder> orders;  ///< by rank, where it has one
  /// By stage and first rank of a replica, where it shares experts with others.
  std::map<std::pair<int, int>, LockStepReplicas> replicas = {};
};

struct LockStepState {
  static constexpr const char* name = "lock_step";

  /// A pass that waits for its turn. Ranks of one set have the same order, so it is kept for the
  /// first.
  struct HeldPass {
    StagePass pass;
    std::function<void()> send;
  };

  /// A pass of some of the replicas that share experts, by their first ranks.
  struct Meeting {
    const LockStepReplicas* replicas = nullptr;  ///< into the configuration
    StagePass pass;
    std::map<int, std::function<void()>> sends;
  };

  LockStepConfig config;
  std::vector<Meeting> meetings;              ///< those that lack a replica
  std::map<int, std::size_t> turns;           ///< by rank: place in its order
  std::map<int, std::vector<HeldPass>> held;  ///< by rank
};

LockStep::behavior_type RunLockStep(ActorPointer<LockStep, LockStepState> self,
                                    LockStepConfig config);

}  // namespace troupe
