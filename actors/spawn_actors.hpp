// Makes the actors of one process as the JobPlan describes them. Adds to a request the parts of a
// configuration that do not travel: the plan, the process's own memory and devices.
#pragma once

#include <functional>
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
/// Begins to record messages and work. Returns why the file is missing, or ""; throws
/// std::runtime_error on process 0, which must have one.
std::string OpenTraceFile(NodePointer self, const OpenTrace& request);

/// Makes the Node own and watch it. `threaded`: it has its own thread, and its handlers may take
/// long.
void Adopt(NodePointer self, const caf::actor& child, const ActorId& id, bool threaded);

/// Builds the job over all its processes, from process 0 (job_builder.cpp). Calls `built` with ""
/// when the Director exists, or with the error. Returns a function that cancels: no more requests
/// are sent, and `built` is not called.
std::function<void()> BuildJob(NodePointer self,
                               std::function<void(const std::string& error)> built);

/// Makes a feed machine a worker of the dispatcher of this process.
void AddMachine(NodePointer self, std::shared_ptr<FeedMachine> machine);

}  // namespace troupe
