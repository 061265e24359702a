// Makes the actors of one process as the JobPlan describes them: what does not travel in a request
// (the plan, the process's own memory and devices) is added here.
#pragma once

#include <string>

#include "actors/node_actor.hpp"

namespace troupe {

DevicesSpawned Spawn(NodePointer self, const SpawnDevices& request);
Spawned Spawn(NodePointer self, const SpawnLockStep& request);
Spawned Spawn(NodePointer self, const SpawnUpdate& request);
Spawned Spawn(NodePointer self, const SpawnStage& request);
Spawned Spawn(NodePointer self, const SpawnDestinationLeader& request);
Spawned Spawn(NodePointer self, const SpawnSourceLeader& request);
Spawned Spawn(NodePointer self, const SpawnPhase& request);
Spawned Spawn(NodePointer self, const SpawnFeed& request);
/// Begins to note messages and work. Returns why there is no file though one was wanted; throws
/// std::runtime_error where there must be one.
std::string OpenTraceFile(NodePointer self, const OpenTrace& request);

/// The Node owns and watches it from now on. `threaded`: it has a thread of its own, and handlers
/// that may take long.
void Adopt(NodePointer self, const caf::actor& child, const ActorId& id, bool threaded);

}  // namespace troupe
