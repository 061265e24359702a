// Messages to a Node: create the actors of its process, watch them, end them. Every process has the
// same JobPlan, so a request names an actor by its numbers there and carries only the handles of
// the actors that it will send to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/device.hpp"
#include "messages/disk.hpp"
#include "messages/pipeline.hpp"
#include "messages/round.hpp"
#include "modules/feed_machines.hpp"
#include "transport/wait.hpp"

namespace troupe {

/// The answer to every request for one actor; cast it to the requested interface.
struct Spawned {
  caf::actor actor;
};
inline auto Fields(Spawned& x) { return std::tie(x.actor); }

/// From one Node to another, once they are connected: the sender and the address of its tensors.
/// Answered with the same about the receiver.
struct Introduce {
  int process = 0;
  caf::actor node;                        ///< a Node
  std::vector<std::byte> tensor_address;  ///< of the data plane
  bool sees_run_directory = true;         ///< that of process 0, under the same path
  std::string feed_address = {};          ///< where feed machines connect; empty: nowhere
};
inline auto Fields(Introduce& x) {
  return std::tie(x.process, x.node, x.tensor_address, x.sees_run_directory, x.feed_address);
}

/// From the process to its Node, which introduces itself to `others`. Answered when all Nodes of the
/// job have introduced themselves, or the job has failed.
struct AwaitNodes {
  std::vector<caf::actor> others;  ///< Nodes
  bool sees_run_directory = true;  ///< as in Introduce
};
inline auto Fields(AwaitNodes& x) { return std::tie(x.others, x.sees_run_directory); }
struct NodesKnown {
  std::vector<std::vector<std::byte>> tensor_addresses;  ///< by process
  std::vector<std::string> feed_addresses;               ///< of other processes that have one
};
inline auto Fields(NodesKnown& x) { return std::tie(x.tensor_addresses, x.feed_addresses); }

/// All devices of the process. Answered once the process itself is ready to run.
struct SpawnDevices : NoFields {};
struct DevicesSpawned {
  std::map<int, Device> devices;  ///< by rank
};
inline auto Fields(DevicesSpawned& x) { return std::tie(x.devices); }

/// For a set of ranks, or for the passes of one replica of a stage.
struct SpawnLockStep {
  int set = -1;  ///< JobPlan's number; -1: of a replica
  int stage = -1;
  int dp = -1;
  std::map<int, Device> devices;  ///< of the set, by rank
};
inline auto Fields(SpawnLockStep& x) { return std::tie(x.set, x.stage, x.dp, x.devices); }

struct SpawnUpdate {
  int update = 0;  ///< index in JobPlan::updates
  LockStep devices;
};
inline auto Fields(SpawnUpdate& x) { return std::tie(x.update, x.devices); }

/// The receiver of an outgoing link of a stage.
struct LinkTarget {
  Downstream to;
  int link = 0;  ///< the receiver's number for it
};
inline auto Fields(LinkTarget& x) { return std::tie(x.to, x.link); }

struct SpawnStage {
  int stage = 0;
  int dp = 0;
  LockStep devices;
  std::vector<LinkTarget> out;
  Update update;  ///< invalid when the stage has no trainable parameters
};
inline auto Fields(SpawnStage& x) { return std::tie(x.stage, x.dp, x.devices, x.out, x.update); }

struct SpawnDestinationLeader {
  int link = 0;  ///< index in StageGraph::links
  int dp = 0;
  int part = 0;  ///< along cp
  Downstream stage;
};
inline auto Fields(SpawnDestinationLeader& x) { return std::tie(x.link, x.dp, x.part, x.stage); }

struct SpawnSourceLeader {
  int link = 0;
  int dp = 0;
  int part = 0;
  std::map<int, DestinationLeader> peers;  ///< by destination shard
};
inline auto Fields(SpawnSourceLeader& x) { return std::tie(x.link, x.dp, x.part, x.peers); }

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

/// The job is over: end all actors of the process. Answered when they have ended.
struct EndActors {
  Failure failure;  ///< of the job; empty: it succeeded
};
inline auto Fields(EndActors& x) { return std::tie(x.failure); }
struct ActorsEnded : NoFields {};

/// From the watch of the same process: `process` is lost and will not answer.
struct PeerLost {
  int process = 0;
};
inline auto Fields(PeerLost& x) { return std::tie(x.process); }

/// From process 0: the process is slow, and leaves its place to a spare.
struct LeaveJob {
  int process = 0;
};
inline auto Fields(LeaveJob& x) { return std::tie(x.process); }

/// A feed machine has come to this process.
struct MachineCame {
  std::shared_ptr<FeedMachine> machine;
};

/// From the watchdog of process 0: no process has made progress for so long.
struct Stalled {
  std::int64_t since_ns = 0;
};
inline auto Fields(Stalled& x) { return std::tie(x.since_ns); }

/// Return the wait lists of this process: the answers that its actors wait for and owe.
struct ReportWaits : NoFields {};

struct Waits {
  std::vector<ActorWaits> actors;
};
inline auto Fields(Waits& x) { return std::tie(x.actors); }
inline auto Fields(ActorKey& x) { return std::tie(x.process, x.actor); }
inline auto Fields(Wait& x) {
  return std::tie(x.what, x.unit, x.number, x.whom, x.request, x.message, x.on_its_way, x.key);
}
inline auto Fields(Owed& x) { return std::tie(x.to, x.request, x.key); }
inline auto Fields(ActorWaits& x) {
  return std::tie(x.who, x.node, x.busy, x.waits, x.owes, x.key);
}

/// Write what all actors have waited for since `before` next to the traces. Without `before`, the
/// Node of process 0 collects it and sends itself this message again, a moment later.
struct WriteWaits {
  std::vector<ActorWaits> before;
};
inline auto Fields(WriteWaits& x) { return std::tie(x.before); }

/// From process 0, before any other actor is created: record messages and work from now on.
struct OpenTrace {
  std::string folder;  ///< of the file; empty: in memory only
};
inline auto Fields(OpenTrace& x) { return std::tie(x.folder); }
struct TraceOpened {
  std::string error;  ///< empty: the file is open
};
inline auto Fields(TraceOpened& x) { return std::tie(x.error); }

/// From a Node to itself: process 0 has not ended the failed job in time.
struct GiveUp : NoFields {};

/// One process of the job. RunJob goes to every Node, from its own process; it is answered when
/// the job is over and all actors of the process have ended.
using Node = caf::typed_actor<
    caf::replies_to<Introduce>::with<Introduce>, caf::replies_to<AwaitNodes>::with<NodesKnown>,
    caf::replies_to<RunJob>::with<JobDone>, caf::reacts_to<JobFailed>, caf::reacts_to<StopSoon>,
    caf::reacts_to<SaveSoon>, caf::reacts_to<GiveUp>, caf::reacts_to<Stalled>,
    caf::reacts_to<WriteWaits>, caf::reacts_to<PeerLost>, caf::reacts_to<LeaveJob>,
    caf::reacts_to<MachineCame>, caf::replies_to<SpawnDevices>::with<DevicesSpawned>,
    caf::replies_to<SpawnLockStep>::with<Spawned>, caf::replies_to<SpawnUpdate>::with<Spawned>,
    caf::replies_to<SpawnStage>::with<Spawned>,
    caf::replies_to<SpawnDestinationLeader>::with<Spawned>,
    caf::replies_to<SpawnSourceLeader>::with<Spawned>, caf::replies_to<SpawnPhase>::with<Spawned>,
    caf::replies_to<SpawnFeed>::with<Spawned>, caf::replies_to<OpenTrace>::with<TraceOpened>,
    caf::replies_to<ReportWaits>::with<Waits>, caf::replies_to<EndActors>::with<ActorsEnded>,
    caf::replies_to<FindFile>::with<FileFound>, caf::replies_to<ReadFile>::with<FileRead>,
    caf::replies_to<PublishManifest>::with<ManifestPublished>,
    caf::replies_to<HoldMirror>::with<MirrorHeld>, caf::replies_to<GiveFiles>::with<FilesGiven>,
    caf::replies_to<CompleteHeld>::with<HeldCompleted>, caf::reacts_to<NodeWorkEnded>>;

}  // namespace troupe
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::MachineCame)  // it stays in its process
