// One rank: a thread bound to one device, which executes commands in the order given.
//   receives  RunForward, RunBackward, RunBackwardWeights, ReduceGradients, UpdateParameters,
//             RunExchange, OffloadState, RestoreState, Inspect, SaveShard, LoadShard
//             WorkEnded    from its own queue: the oldest command on one of its lanes has run
//   answers   what was asked, when it is done
//
//   without a queue   a command is done when its program returns
//   with one          the program queues the work and returns; WorkEnded says when it has run. At
//                     most kQueuedCommands are on a lane, so the device finds the next one there
//                     when it is done with one, and a job that fails has little left to run.
//                     Commands start in the order in which they came, on whichever lane: members
//                     of groups meet in it
//
// In virtual time it computes at once and answers when the work's stated time is over.
//
// It never decides. A command that throws raises the job's abort signal with one line that names
// shard, pass and reason: ranks that wait for this one in a collective must wake up.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "actors/lane_times.hpp"
#include "messages/device.hpp"
#include "modules/groups.hpp"
#include "modules/memory_meter.hpp"
#include "modules/work_queue.hpp"
#include "trace/core_clock.hpp"
#include "trace/pass_record.hpp"
#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/tensor_store.hpp"

namespace troupe {

/// How shards are stored (checkpoint/sharded.hpp, below us in the order of folders). Both may
/// throw.
struct ShardStorage {
  /// Answers the SHA-256 of what it wrote.
  std::function<std::string(const StageProgram&, const ShardAddress&, const std::string& folder,
                            std::int64_t step)>
      save;
  std::function<void(StageProgram&, const ShardAddress&, const std::string& folder)> load;
};

/// How long a piece of work takes in virtual time, in ns, 0 or more. `stage` is its index in the
/// StageGraph. See actors/virtual_time.hpp.
using WorkTime = std::function<std::int64_t(WorkKind kind, int stage, std::int64_t unit)>;

/// What a command is.
struct DeviceWork {
  WorkKind kind = WorkKind::kForward;
  int stage = -1;
  std::int64_t round = 0;
  std::int64_t unit = 0;        ///< as PassRecord::unit
  const char* aside = nullptr;  ///< its name in errors if no round has it; the trace neither
  UnitPlace place = {};         ///< for errors
  std::vector<std::string> samples = {};
};

struct DeviceConfig {
  int rank = 0;
  std::map<int, ShardAddress> shards;  ///< by stage index: what lives on this rank
  ProgramFactory make_program;         ///< called on the device's thread
  std::function<void()> setup_thread;  ///< first thing on the device's thread; may be empty
  WorkQueueFactory make_queue;         ///< empty: programs do their work before they return
  int gpu = Buffer::kHost;             ///< whose memory its programs read
  DeviceGroupMaker make_group;         ///< with a queue: what its collectives go over
  std::map<int, std::unique_ptr<Communicator>> groups;  ///< of exchanges, by group number
  std::map<int, GroupNames> group_names;                ///< of the same
  ShardStorage storage;
  std::shared_ptr<TensorStore> tensors;  ///< brings what a command refers to elsewhere
  std::shared_ptr<AbortSignal> abort;
  std::shared_ptr<MessageTrace> trace;  ///< gets what ran; may be null
  std::shared_ptr<MemoryMeter>
      memory;         ///< noted with it; null: it is not (virtual time computes nothing)
  WorkTime takes_ns;  ///< virtual time: how long work takes; empty: as long as it does
};

struct DeviceState {
  static constexpr const char* name = "device";

  /// Null: none. Before everything that uses its stream to the end: programs, groups, buffers.
  std::unique_ptr<WorkQueue> queue;
  DeviceConfig config;
  CoreClock cores;  ///< of the device's thread, where its programs compute on that and are traced
  std::map<int, std::unique_ptr<StageProgram>> programs;  ///< by stage index
  std::int64_t free_at_ns = 0;                            ///< virtual time: when its work ends

  /// A command that has come and is not on the queue yet.
  struct Waiting {
    std::optional<Lane> lane;  ///< none: nothing may be on any when it starts
    std::function<void()> start;
  };
  static constexpr std::size_t kQueuedCommands = 2;

  /// What is on one lane of the queue.
  struct OnLane {
    /// Of its commands, oldest first: what is left to do when they have run.
    std::deque<std::function<void(const std::string& error)>> queued;
    std::int64_t head_since_ns = 0;  ///< since when it runs the first of them; 0: none
  };

  HostRowMemory host;
  std::deque<Waiting> waiting;
  std::array<OnLane, kNumLanes> lanes;
  OnLane& on(Lane lane) { return lanes[static_cast<std::size_t>(lane)]; }
  LaneTimes lane_times;

  /// Where this rank's rows lie.
  RowMemory& rows() { return queue ? static_cast<RowMemory&>(*queue) : host; }

  // State that is on its way from or to the device, beside what it computes (device_moves.hpp).
  std::map<std::int64_t, std::function<void(const StateMoved&)>> moves;  ///< by number
  std::int64_t next_move = 0;
  std::int64_t copies_free_at_ns = 0;  ///< virtual time: when its copies end
};

/// What the interface of a Device lacks is what only the device itself says.
using DeviceWithMoves = Device::extend<caf::reacts_to<StateMoved>>;
using DevicePointer = ActorPointer<DeviceWithMoves, DeviceState>;

/// Makes its programs before the first command. A factory that throws raises the abort signal.
DeviceWithMoves::behavior_type RunDevice(DevicePointer self, DeviceConfig config);

}  // namespace troupe
