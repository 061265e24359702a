// The identity of an actor, for code. Its name follows from it and is for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "layout/ids.hpp"

namespace troupe {

/// The values are in trace files.
enum class ActorKind : std::uint8_t {
  kOther = 0,  ///< none of these, or unknown
  kDirector,
  kNode,      ///< one per process; its messages are not traced
  kStage,     ///< one replica of a pipeline stage
  kLeader,    ///< one shard's end of an edge between modules on disjoint ranks
  kPhase,     ///< an edge between modules that share ranks
  kFeed,      ///< reads the data of one replica of a module
  kUpdate,    ///< the stages that are updated together; `stage` is the first
  kLockStep,  ///< a set of ranks, or the passes of one replica of a stage
  kDevice,
  kDispatcher,   ///< has the samples of the feeds of one process prepared
  kDataWorker,   ///< prepares samples; `set` is its number in its process
  kMachineLink,  ///< the connection of a process to a feed machine
};
inline constexpr std::uint8_t kNumActorKinds = 13;

enum class EdgeEnd : std::uint8_t { kNone = 0, kSource, kDestination };

/// A number is -1 if the kind does not use it.
struct ActorId {
  ActorKind kind = ActorKind::kOther;
  EdgeEnd end = EdgeEnd::kNone;  ///< kLeader
  int stage = -1;                ///< StageGraph's number; kFeed: the first of its module
  int replica =
      -1;         ///< kLeader: the number of its shard, dp * cp of the module + its place along cp
  int rank = -1;  ///< kDevice
  int set = -1;   ///< kLockStep: the set of ranks; -1: one replica of `stage`. kDataWorker
  int link = -1;  ///< kLeader, kPhase: StageGraph's number
  /// The stage, module, edge or process in its name; kMachineLink: "f1 of n0"; kOther: the whole name.
  std::string of = {};

  friend bool operator==(const ActorId&, const ActorId&) = default;
};

inline const char* ToString(EdgeEnd end) {
  return end == EdgeEnd::kSource ? "source" : "destination";
}

/// "director", "node n1", "stage language.s1 dp0", "leader vision>language/source.0",
/// "phase vision>language", "feed of vision dp1", "update of language.s0", "lock step 0",
/// "lock step of vision.s0 dp1", "device 3", "dispatcher of n1", "data worker 0 of n1",
/// "feed machine f1 of n0".
std::string ToString(const ActorId& id);

// Actors that a number identifies.
inline ActorId DirectorActor() { return {.kind = ActorKind::kDirector}; }
inline ActorId LockStepActor(int set) { return {.kind = ActorKind::kLockStep, .set = set}; }
inline ActorId DeviceActor(int rank) { return {.kind = ActorKind::kDevice, .rank = rank}; }

// Name lines of trace files (trace/recorder.hpp), without their letter and number. A number
// out of range is read as -1, an unknown kind as kOther.

/// "KIND END STAGE REPLICA RANK SET LINK OF".
std::string EncodeActor(const ActorId& id);
/// A line that does not begin with seven numbers is an actor of kind kOther with that name.
ActorId DecodeActor(std::string_view line);

/// "NUMBER MODULE".
std::string EncodeStage(const StageId& stage);
StageId DecodeStage(std::string_view line);

}  // namespace troupe
