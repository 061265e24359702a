// Turns a JobPlan into actors, sinks first, because an actor is born knowing whom it speaks to.
#pragma once

#include "actors/node_actor.hpp"

namespace troupe {

/// Spawns everybody but the Node; fills state.director, tracer and children.
void SpawnJob(ActorPointer<Node, NodeState> self);

}  // namespace troupe
