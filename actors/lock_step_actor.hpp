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
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/device.hpp"

namespace troupe {

struct LockStepConfig {
  std::string name;
  std::map<int, Device> devices;  ///< by rank
};

struct LockStepState {
  static constexpr const char* name = "lock_step";

  /// A set that has been sent on and has not been answered in full.
  struct OpenSet {
    std::string what;  ///< "forward"
    std::string unit;
    std::int64_t number = 0;
    std::vector<int> ranks;
    std::vector<bool> answered;  ///< by place in `ranks`
  };

  LockStepConfig config;
  std::int64_t next_set = 0;
  std::map<std::int64_t, OpenSet> open;
};

LockStep::behavior_type RunLockStep(ActorPointer<LockStep, LockStepState> self,
                                    LockStepConfig config);

}  // namespace troupe
