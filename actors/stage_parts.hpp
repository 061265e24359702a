// The parts of a stage (stage_actor.hpp), for each other.
#pragma once

#include <cstddef>

#include <caf/error.hpp>

#include "actors/stage_actor.hpp"

namespace troupe {

using StagePointer = ActorPointer<Stage, StageState>;

// stage_actor.cpp: rounds and decisions

/// The first failure of this stage: everybody who waits for it learns the reason.
void Fail(StagePointer self, const caf::error& reason);

/// Decides; in virtual time as the simulator does, once all that ends at this instant has ended.
/// Comes last in whatever changes the state.
void Pump(StagePointer self);

// stage_passes.cpp: commands to the devices, and their answers

/// Starts a pass that the rule has chosen and that is counted.
void StartPass(StagePointer self, const Pass& pass);

// stage_arrivals.cpp: tensors of messages

/// An activation whose unit is the expected one. Answers are the caller's.
void OnActivation(StagePointer self, const Activation& activation, Promise<Gradient> asker);
/// The answer on outgoing link `link`. Fails if its unit is not the expected one.
void OnGradient(StagePointer self, std::size_t link, const Gradient& gradient);
/// A shard that had to be fetched is here.
void OnShardArrived(StagePointer self, const ShardArrived& arrived);

}  // namespace troupe
