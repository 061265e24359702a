// One process of the job: makes the actors of its ranks, watches them, ends them.
//   receives  Introduce    from the Node of another process; answers the same about this one
//             AwaitNodes   answers NodesKnown when all have introduced themselves
//             RunJob       from its own process; on process 0 it starts the job. Answers JobDone
//                          when the job is over and all actors of this process have ended
//             Spawn...     from the JobBuilder on process 0; answers the actor
//             JobFailed    from the abort signal of this process, or from another Node
//             StopSoon, SaveSoon  from its own process or another Node; forwarded to the Director
//             LeaveJob     on process 0, which forwards it: a spare takes that process's place
//             PeerLost     from the watch: that process gets no more requests
//             Stalled      from the watchdog of process 0: ends the job and names the root of the
//                          stall
//             WriteWaits   writes the waits of all processes that last next to the traces
//             OpenTrace    answers TraceOpened; messages are recorded from now on
//             ReportWaits  answers the wait lists of this process's actors
//             EndActors    from process 0; answers ActorsEnded
//             FindFile, ReadFile  from a device of another process: files of checkpoints
//             PublishManifest  from the Director: writes the manifest of a checkpoint on this disk
//             HoldMirror   from the Director: fetches files that another process holds in memory
//             GiveFiles    from another Node: answers files that this process holds
//             CompleteHeld  from the Director: they are a checkpoint, and the one before is dropped
//             NodeWorkEnded    from another thread: answers one of these
//   sends     JobFailed to all other Nodes, EndActors from process 0, exit messages to its actors
//
// An actor that ends without being asked to fails the job, which names it. The Node alone owns the
// actors, so handles that point at each other cannot keep a finished job alive. The first failure
// wins in every process, and every process sends it to all others: a job ends everywhere with one
// cause.
//
// node_actor.cpp starts and ends the job; node_waits.cpp reports the waits of its actors; node_disk.cpp
// reads and writes files for other processes; node_mirrors.cpp holds theirs in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "actors/device_actor.hpp"
#include "actors/director_actor.hpp"
#include "messages/data.hpp"
#include "messages/node.hpp"
#include "messages/round.hpp"
#include "plan/job_plan.hpp"
#include "plan/mirrors.hpp"
#include "plan/process_plan.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

/// On process 0 with the course of the job; the others leave it empty.
struct NodeConfig : DeviceTools, JobCourse {
  std::shared_ptr<const JobPlan> plan;
  std::shared_ptr<const ProcessPlan> processes;
  ProcessId self = 0;
  std::shared_ptr<DataPlane> plane;       ///< null when the job is one process
  std::vector<std::byte> tensor_address;  ///< of the plane, for the others
  std::string feed_address;               ///< for the others, as in Introduce
  /// Has MachineCame sent to this Node for each feed machine. Called once there is a dispatcher; may be
  /// empty.
  std::function<void(const Node&)> await_machines;

  std::size_t queued_passes = 1;        ///< that a stage's devices may have at a time
  std::function<int(int rank)> gpu_of;  ///< the GPU of a rank of this process; empty: no GPUs
  std::shared_ptr<InputSource> source;
  std::size_t trace_records = 1 << 17;    ///< kept of each process
  int cores = 0;                          ///< that this process may use; 0: not known
  std::shared_ptr<ActivityTable> actors;  ///< gets every actor of this process; may be null
  std::function<void()> ending;      ///< called once, when other processes may leave; may be empty
  std::function<void()> leave = {};  ///< ends this process, for a spare to take its place
  std::vector<PlantedFault> faults;  ///< of tests
  /// Devices, feeds and the director get their own threads. Off under the deterministic scheduler
  /// of tests, where nothing may block.
  bool threads = true;
  /// How long a failed job waits for process 0 to end it.
  std::chrono::milliseconds patience{1500};
  std::string trace_folder;  ///< of process 0; empty: traces stay in memory
};

/// Which processes hold what for others in memory; nothing if they do not.
MirrorPlan MirrorsOf(const NodeConfig& config);

/// Time for the Nodes of other processes to answer while a job starts.
inline constexpr std::chrono::seconds kGreetingTime{20};

struct NodeState {
  static constexpr const char* name = "node";

  NodeConfig config;
  std::map<ProcessId, Node> nodes;  ///< those known so far, this one included
  std::vector<std::vector<std::byte>> tensor_addresses;
  std::vector<std::string> feed_addresses;  ///< of other processes
  std::vector<ProcessId> apart;  ///< processes that do not see the run directory of process 0
  Promise<NodesKnown> nodes_known;

  std::shared_ptr<void> abort_subscription;
  std::function<void()> cancel_build;           ///< process 0
  Director director;                            ///< process 0
  Dispatcher dispatcher;                        ///< of a process with feeds that need one
  std::map<caf::actor_addr, ActorId> children;  ///< alive
  std::vector<caf::actor> owned;

  /// Work that continues on the Node when another thread has ended its part.
  std::map<std::int64_t, std::function<void()>> continuations;
  std::int64_t next_continuation = 0;

  bool running = false;                     ///< RunJob has arrived
  Promise<DevicesSpawned> devices_spawned;  ///< pending: SpawnDevices arrived before RunJob
  bool failed = false;
  bool stop_asked = false;       ///< StopSoon has arrived
  bool save_asked = false;       ///< SaveSoon has arrived before there was a Director
  bool ending = false;           ///< other processes may leave
  bool stopping = false;         ///< the actors of this process are being ended
  std::size_t missing_ends = 0;  ///< process 0: Nodes that have not ended
  JobDone result;
  Promise<JobDone> job_done;
  Promise<ActorsEnded> actors_ended;
};

using NodePointer = ActorPointer<Node, NodeState>;

Node::behavior_type RunNode(NodePointer self, NodeConfig config);

// node_disk.cpp, for node_actor.cpp and spawn_actors.cpp.

caf::result<FileFound> FindOnDisk(NodePointer self, const FindFile& find);
caf::result<FileRead> ReadOnDisk(NodePointer self, const ReadFile& read);
caf::result<ManifestPublished> PublishOnDisk(NodePointer self, const PublishManifest& publish);
/// Files in memory here, and files of other processes. For the devices of this process, which may
/// block. Empty in a job of one process.
OpenElsewhere OpenerOf(NodePointer self);
/// Returns a callback for another thread, which calls it once. Then the Node does `work`.
std::function<void()> OnNode(NodePointer self, std::function<void()> work);

// node_mirrors.cpp, for node_actor.cpp.

caf::result<MirrorHeld> HoldMirrorOf(NodePointer self, const HoldMirror& hold);
caf::result<FilesGiven> GiveHeld(NodePointer self, const GiveFiles& give);

// node_waits.cpp, for node_actor.cpp.

/// The wait lists of this process's actors. One that does not answer in time is reported as busy.
caf::result<Waits> CollectWaits(NodePointer self);
/// Writes the wait lists of all processes next to the traces, on process 0.
void WriteAllWaits(NodePointer self, const WriteWaits& write);
/// Ends the job with the root of the stall. Asks twice: an answer comes after all that was in the
/// mailbox before the question, so on a machine that is short of cores the actors have moved on by
/// the second answer, and the job goes on.
void OnStalled(NodePointer self, const Stalled& stalled);
/// Writes a file next to the traces, if they go to files. A failure is only a warning.
void WriteNextToTraces(const NodeConfig& config, const char* file, const std::string& text);

}  // namespace troupe
