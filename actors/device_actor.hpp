// One rank: a thread bound to one device, which executes commands in the order given.
//   receives  RunForward, RunBackward, RunBackwardWeights, ReduceGradients, UpdateParameters,
//             RunExchange, OffloadState, RestoreState, Inspect, SaveShard, LoadShard
//   answers   what was asked, when it is done
//
// In virtual time it computes at once and answers when the work's stated time is over.
//
// It never decides. A command that throws raises the job's abort signal with one line that names
// shard, pass and reason: ranks that wait for this one in a collective must wake up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "actors/actor_base.hpp"
#include "messages/device.hpp"
#include "modules/memory_meter.hpp"
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

struct DeviceConfig {
  int rank = 0;
  std::map<int, ShardAddress> shards;  ///< by stage index: what lives on this rank
  ProgramFactory make_program;         ///< called on the device's thread
  std::function<void()> setup_thread;  ///< first thing on the device's thread; may be empty
  std::map<int, std::shared_ptr<Communicator>> groups;  ///< of exchanges, by group number
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

  DeviceConfig config;
  std::map<int, std::unique_ptr<StageProgram>> programs;  ///< by stage index
  std::int64_t free_at_ns = 0;                            ///< virtual time: when its work ends

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
