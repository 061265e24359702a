// One rank: a thread bound to one device, which executes commands in the order given.
//   receives  RunForward, RunBackward, RunBackwardWeights, ReduceGradients, UpdateParameters,
//             RunExchange, OffloadState, RestoreState, Inspect, CopyState, SaveShard, LoadShard
//             WorkEnded    from its own queue: the oldest command on one of its lanes has run
//             StateMoved   from another thread: the copies of one OffloadState, RestoreState or
//                          CopyState have run, or the file of a SaveShard is written
//   answers   every command when it is done
//
//   without a queue   a command is done when its program returns
//   with one          the program queues the work and returns; WorkEnded arrives when it has run.
//                     At most kQueuedCommands are on a lane: the device finds the next one there
//                     when one is done, and a job that fails has little left to run. Commands start
//                     in the order of their arrival, across lanes: members of groups meet in it
//   offload, restore  the copies run while the device goes on with its commands; a shard's begin
//   and copy          when those before have run
//   save              of what was copied: by the process's writer thread, or its memory writer
//                     for memory
//
// In virtual time it computes at once and answers when the work's stated time is over; copies take
// their stated time one after the other, concurrently with the device's other work.
//
// It never decides. A command that throws raises the job's abort signal with one line that names
// shard, pass and reason: ranks that wait for this one in a collective must wake up.
//
// device_actor.cpp runs commands, device_state.cpp those that move state; device_work.cpp names them,
// records them and fetches their tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "actors/work_time.hpp"
#include "files/byte_source.hpp"
#include "messages/device.hpp"
#include "messages/disk.hpp"
#include "modules/groups.hpp"
#include "modules/held_files.hpp"
#include "modules/memory_meter.hpp"
#include "modules/task_thread.hpp"
#include "modules/work_queue.hpp"
#include "trace/core_clock.hpp"
#include "trace/pass_record.hpp"
#include "transport/communicator.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// How shards are stored (checkpoint/sharded.hpp, a folder that this one may not use). All may
/// throw. `save` is called on any thread.
struct ShardStorage {
  std::function<StoredShard(const std::vector<StoredPiece>&, const ShardAddress&, const SaveOrder&)>
      save;
  std::function<LoadedShard(StageProgram&, const ShardAddress&, const LoadOrder&,
                            const OpenElsewhere&)>
      load;
  /// Writes a manifest on the disk of this process, and removes old checkpoints.
  std::function<void(const PublishManifest&, const std::string& disk)> publish;
};

/// A command, as errors, traces and the device's own tools name it.
struct DeviceWork {
  WorkKind kind = WorkKind::kForward;
  int stage = -1;
  std::int64_t round = 0;
  std::int64_t unit = 0;           ///< as PassRecord::unit
  const char* untraced = nullptr;  ///< its name in errors, if it is of no round: it is not traced
  UnitPlace place = {};            ///< for errors
  std::vector<std::string> samples = {};
};

/// The members that all devices of a process have in common.
struct DeviceTools {
  /// Waits of this process's groups; may be null. Groups write into it to their end, so it is
  /// declared before all members that may hold a group.
  std::shared_ptr<GroupWaits> group_waits;
  ProgramFactory make_program;         ///< called on the device's thread
  std::function<void()> setup_thread;  ///< called first on the device's thread; may be empty
  WorkQueueFactory make_queue;         ///< empty: programs do their work before they return
  DeviceGroupMaker make_group;         ///< with a queue: makes the groups of its collectives
  ShardStorage storage;
  bool copies = false;                        ///< its programs will copy their state
  std::string disk;                           ///< StoredShard::disk of what this process writes
  OpenElsewhere open_elsewhere;               ///< for loading; empty: no other process has files
  std::shared_ptr<TaskThread> writer;         ///< saves copies; null: they are saved at once
  std::shared_ptr<HeldFiles> held;            ///< checkpoints in memory; null: there are none
  std::shared_ptr<TaskThread> memory_writer;  ///< makes its files; null: they are made at once
  std::shared_ptr<TensorStore> tensors;       ///< fetches the tensors of commands
  std::shared_ptr<AbortSignal> abort;
  std::shared_ptr<MessageTrace> trace;  ///< records its messages and work; may be null
  std::shared_ptr<MemoryMeter> memory;  ///< recorded with its work; may be null (virtual time)
  WorkTime takes_ns;  ///< virtual time: how long work takes; empty: as long as it does
};

struct DeviceConfig : DeviceTools {
  int rank = 0;
  std::map<int, ShardAddress> shards;    ///< by stage index: those on this rank
  std::map<int, ShardAddress> mirrored;  ///< likewise: the shard whose mirror it makes
  int gpu = Buffer::kHost;               ///< whose memory its programs read
  std::map<int, std::unique_ptr<Communicator>> groups;  ///< of exchanges, by group number
  std::map<int, GroupNames> group_names;                ///< of the same
};

/// How long a device with concurrent lanes was busy: time counts once.
class LaneTimes {
 public:
  /// Counts a piece that ran on `lane` from `begin_ns` to `end_ns`, after those before it on the
  /// same lane. Returns the part of that time, 0 or more, in which no piece counted before ran on
  /// another lane.
  std::int64_t Count(Lane lane, std::int64_t begin_ns, std::int64_t end_ns);
  /// Nothing is left on `lane`: its next piece begins after all counted ones.
  void Emptied(Lane lane);

 private:
  struct Piece {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  /// By lane: pieces that may overlap future pieces of other lanes.
  std::array<std::vector<Piece>, kNumLanes> counted_;
};

struct DeviceState {
  static constexpr const char* name = "device";

  /// May be null. Declared before everything that uses its stream to the end: programs, groups,
  /// buffers.
  std::unique_ptr<WorkQueue> queue;
  DeviceConfig config;
  CoreClock cores;  ///< of the device's thread, where its programs compute on that and are traced
  std::map<int, std::unique_ptr<StageProgram>> programs;  ///< by stage index
  std::int64_t free_at_ns = 0;                            ///< virtual time: when its work ends

  /// A command that is not on the queue yet.
  struct Waiting {
    std::optional<Lane> lane;  ///< none: it starts when all lanes are empty
    std::function<void()> start;
  };
  static constexpr std::size_t kQueuedCommands = 2;

  /// The commands on one lane of the queue.
  struct OnLane {
    /// Called when their commands have run, oldest first.
    std::deque<std::function<void(const std::string& error)>> queued;
    std::int64_t head_since_ns = 0;  ///< when the first of them began to run; 0: none is queued
  };

  HostRowMemory host;
  std::deque<Waiting> waiting;
  std::array<OnLane, kNumLanes> lanes;
  OnLane& on(Lane lane) { return lanes[static_cast<std::size_t>(lane)]; }
  LaneTimes lane_times;

  /// The memory of this rank's rows.
  RowMemory& rows() { return queue ? static_cast<RowMemory&>(*queue) : host; }

  // Copies of state, and writes of those.
  std::map<std::int64_t, std::function<void(const StateMoved&)>> moves;  ///< by number
  std::int64_t next_move = 0;
  std::int64_t copies_free_at_ns = 0;  ///< virtual time: when its copies end
  /// By stage whose state is being copied: the copies that wait for that.
  std::map<int, std::deque<std::function<void()>>> copying;
  /// By stage whose state is away, or about to be: the snapshots that wait for its return.
  std::map<int, std::vector<std::function<void()>>> away;
};

/// Adds the messages that a device sends only to itself and that stay in its process.
using DeviceWithMoves = Device::extend<caf::reacts_to<StateMoved>>;
using DevicePointer = ActorPointer<DeviceWithMoves, DeviceState>;

/// Makes its programs before the first command. A factory that throws raises the abort signal.
DeviceWithMoves::behavior_type RunDevice(DevicePointer self, DeviceConfig config);

// device_work.cpp, for device_actor.cpp.

/// The name that the device's own tools show: "vision.s0/microbatch 3/forward".
std::string RangeName(const DeviceConfig& config, const DeviceWork& work);
/// Records that it ran, if messages are traced; in virtual time, too. `cores` is the time of the
/// thread that did it, if that is known.
void Record(const DeviceConfig& config, const DeviceWork& work, const WorkTimes& times,
            const CoreTime& cores = {});
/// Records that the update `work` was held back for `held_ns`, until now, by a snapshot.
void RecordHeld(const DeviceConfig& config, const DeviceWork& work, std::int64_t held_ns);
/// Records the collectives of a program that have ended since it was last asked.
void RecordConcurrent(const DeviceConfig& config, const DeviceWork& work, StageProgram& program);

/// Ends the job with the first line of `cause`, and returns the same as an error.
caf::error FailWork(const DeviceConfig& config, const DeviceWork& work, const Failure& cause);
/// Like the above, with the exception in flight, unless it only echoes another failure.
caf::error FailWork(const DeviceConfig& config, const DeviceWork& work);

/// Throws std::runtime_error for values that are not finite: they stop the job where they appear,
/// not steps later in the loss. A GPU checks its own buffers (ForwardResult::finish).
void RequireFinite(const std::vector<Buffer>& buffers, const char* kind);
/// Fetches those that are not in this process or not in this device's memory yet. A leader or the
/// stage has fetched most of them; a rank in another process than its stage fetches its inputs
/// here.
void FetchToDevice(DeviceState& s, std::vector<Buffer>& buffers, const char* kind);
/// The inputs of a Feed, which stay on the host.
std::shared_ptr<const Inputs> FetchToHost(const DeviceState& s,
                                          const std::shared_ptr<const Inputs>& inputs);

}  // namespace troupe
