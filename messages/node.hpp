// What a Node is asked: to make the actors of its process, to watch over them, to end them. Every
// process has the same JobPlan, so a request names what to make by its numbers there and brings
// only the handles of those it will speak to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/boundary.hpp"
#include "messages/device.hpp"
#include "messages/job.hpp"
#include "messages/round.hpp"
#include "messages/trace.hpp"
#include "messages/waits.hpp"

namespace troupe {

/// The answer to every request for one actor. Its interface is the one that was asked for.
struct Spawned {
  caf::actor actor;
};
inline auto Fields(Spawned& x) { return std::tie(x.actor); }

/// From one Node to another, once they are connected: who I am, and where my tensors are sent.
/// Answered with the same about the other.
struct Introduce {
  int process = 0;
  caf::actor node;                        ///< a Node
  std::vector<std::byte> tensor_address;  ///< of the data plane
  bool sees_run_directory = true;         ///< process 0's, under the same path
};
inline auto Fields(Introduce& x) {
  return std::tie(x.process, x.node, x.tensor_address, x.sees_run_directory);
}

/// From the process to its Node: tell me when all Nodes are known.
struct AwaitNodes {};
inline auto Fields(AwaitNodes&) { return std::tie(); }
struct NodesKnown {
  std::vector<std::vector<std::byte>> tensor_addresses;  ///< by process
};
inline auto Fields(NodesKnown& x) { return std::tie(x.tensor_addresses); }

/// All devices of the process. Answered once the process itself is ready to run.
struct SpawnDevices {};
inline auto Fields(SpawnDevices&) { return std::tie(); }
struct DevicesSpawned {
  std::map<int, Device> devices;  ///< by rank
};
inline auto Fields(DevicesSpawned& x) { return std::tie(x.devices); }

/// Of a set of ranks, or of the passes of one replica of a stage.
struct SpawnLockStep {
  int set = -1;  ///< JobPlan's number; -1: of a replica
  int stage = -1;
  int dp = -1;
  std::map<int, Device> devices;  ///< by rank: all of the set
};
inline auto Fields(SpawnLockStep& x) { return std::tie(x.set, x.stage, x.dp, x.devices); }

struct SpawnUpdate {
  int update = 0;  ///< index in JobPlan::updates
  LockStep devices;
};
inline auto Fields(SpawnUpdate& x) { return std::tie(x.update, x.devices); }

/// Where a stage's output goes.
struct OutgoingLink {
  Downstream to;
  int link = 0;  ///< the receiver's number for it
};
inline auto Fields(OutgoingLink& x) { return std::tie(x.to, x.link); }

struct SpawnStage {
  int stage = 0;
  int dp = 0;
  LockStep devices;
  std::vector<OutgoingLink> out;
  Update update;  ///< invalid when the stage has no trainable parameters
};
inline auto Fields(SpawnStage& x) { return std::tie(x.stage, x.dp, x.devices, x.out, x.update); }

struct SpawnDestinationLeader {
  int link = 0;  ///< index in StageGraph::links
  int dp = 0;
  Downstream stage;
};
inline auto Fields(SpawnDestinationLeader& x) { return std::tie(x.link, x.dp, x.stage); }

struct SpawnSourceLeader {
  int link = 0;
  int dp = 0;
  std::map<int, DestinationLeader> peers;  ///< by destination replica
};
inline auto Fields(SpawnSourceLeader& x) { return std::tie(x.link, x.dp, x.peers); }

struct SpawnPhase {
  int link = 0;
  LockStep devices;
  std::vector<Downstream> stages;  ///< language first stage, by replica
};
inline auto Fields(SpawnPhase& x) { return std::tie(x.link, x.devices, x.stages); }

struct SpawnFeed {
  int module = 0;  ///< index in JobPlan::modules
  int dp = 0;
  std::vector<Stage> stages;
};
inline auto Fields(SpawnFeed& x) { return std::tie(x.module, x.dp, x.stages); }

/// The job is over, successfully or not: end all actors of the process. Answered when they have
/// ended.
struct EndActors {
  Failure failure;
};
inline auto Fields(EndActors& x) { return std::tie(x.failure); }
struct ActorsEnded {};
inline auto Fields(ActorsEnded&) { return std::tie(); }

/// From the watch of the same process: this one will not answer any more.
struct PeerLost {
  int process = 0;
};
inline auto Fields(PeerLost& x) { return std::tie(x.process); }

/// From the watchdog of process 0: nothing has moved anywhere for so long.
struct Stalled {
  std::int64_t since_ns = 0;
};
inline auto Fields(Stalled& x) { return std::tie(x.since_ns); }

/// Somebody wants to know what everybody waits for: write it beside the traces.
struct TellWaits {};
inline auto Fields(TellWaits&) { return std::tie(); }

/// A Node tells itself: nobody has ended the failed job for us in time.
struct GiveUp {};
inline auto Fields(GiveUp&) { return std::tie(); }

/// One process of the job. RunJob goes to every Node, from its own process; the answer comes when
/// the job is over and all actors of the process have ended.
using Node = caf::typed_actor<
    caf::replies_to<Introduce>::with<Introduce>, caf::replies_to<AwaitNodes>::with<NodesKnown>,
    caf::replies_to<RunJob>::with<JobDone>, caf::reacts_to<JobFailed>, caf::reacts_to<StopSoon>,
    caf::reacts_to<GiveUp>, caf::reacts_to<Stalled>, caf::reacts_to<TellWaits>,
    caf::reacts_to<PeerLost>, caf::replies_to<SpawnDevices>::with<DevicesSpawned>,
    caf::replies_to<SpawnLockStep>::with<Spawned>, caf::replies_to<SpawnUpdate>::with<Spawned>,
    caf::replies_to<SpawnStage>::with<Spawned>,
    caf::replies_to<SpawnDestinationLeader>::with<Spawned>,
    caf::replies_to<SpawnSourceLeader>::with<Spawned>, caf::replies_to<SpawnPhase>::with<Spawned>,
    caf::replies_to<SpawnFeed>::with<Spawned>, caf::replies_to<OpenTrace>::with<TraceOpened>,
    caf::replies_to<ReportWaits>::with<Waits>, caf::replies_to<EndActors>::with<ActorsEnded>>;

}  // namespace troupe
