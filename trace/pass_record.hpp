// The work of a device, as analyses see it (trace/record.hpp has its layout in a file).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// The kind of a device's work. Never 0, so that a record of zeros (a block that a crash left
/// unwritten) is recognised as empty.
enum class WorkKind : std::uint8_t {
  kForward = 1,
  kBackward = 2,
  kReduce = 3,           ///< gradients summed over replicas
  kUpdate = 4,           ///< optimizer step
  kExchange = 5,         ///< boundary rows exchanged within a colocated group
  kWeight = 6,           ///< the weights' part of a split backward
  kOffload = 7,          ///< an encoder's state copied off its device, concurrently with other work
  kRestore = 8,          ///< the same state copied back
  kCheckpoint = 9,       ///< a shard of a checkpoint written, before the round that it delays
  kReduceBucket = 10,    ///< some gradients summed over replicas, concurrently with other work
  kGather = 11,          ///< some parameters gathered from replicas, likewise
  kCollectiveWait = 12,  ///< the part of other work that waited for one of these two
  kActivationsOut = 13,  ///< activations copied off a device, concurrently with other work
  kActivationsBack = 14,  ///< the same activations copied back
  kActivationsWait = 15,  ///< the part of other work that waited for one of these two
  kSnapshot = 16,  ///< a shard's state copied to be written, concurrently with the next round
  kCheckpointWrite = 17,  ///< such a copy written, concurrently with the rounds after
  kSnapshotWait = 18,     ///< the time for which an update waited for a snapshot, or for a mirror
  kMirror = 19,  ///< a copy put into the memory of the process, concurrently with the rounds after
};

inline constexpr std::uint8_t kNumWorkKinds = 19;

/// Collectives, copies of activations and writes that run concurrently with other work, and waits for
/// concurrent work. A trace keeps them apart from work.
constexpr bool IsConcurrent(WorkKind kind) {
  return kind >= WorkKind::kReduceBucket && kind != WorkKind::kSnapshot;
}

/// Copies run concurrently with a device's other work. All other work is sequential, except that
/// sums of gradients may run concurrently with other modules of the rank.
constexpr bool IsCopy(WorkKind kind) {
  return kind == WorkKind::kOffload || kind == WorkKind::kRestore || kind == WorkKind::kSnapshot;
}

/// Work for a checkpoint: its unit is the step.
constexpr bool IsForCheckpoint(WorkKind kind) {
  return kind == WorkKind::kCheckpoint ||
         (kind >= WorkKind::kSnapshot && kind <= WorkKind::kMirror);
}

/// F, B, and W if weight gradients have separate passes. A bubble is time without passes.
constexpr bool IsPass(WorkKind kind) {
  return kind == WorkKind::kForward || kind == WorkKind::kBackward || kind == WorkKind::kWeight;
}

/// "F", "B", "reduce", ...; "?" for any other value.
constexpr const char* ToString(WorkKind kind) {
  constexpr std::array<const char*, kNumWorkKinds + 1> kNames = {"?",
                                                                 "F",
                                                                 "B",
                                                                 "reduce",
                                                                 "update",
                                                                 "exchange",
                                                                 "W",
                                                                 "offload",
                                                                 "restore",
                                                                 "checkpoint",
                                                                 "sum of gradients",
                                                                 "gathering of parameters",
                                                                 "wait for replicas",
                                                                 "activations out",
                                                                 "activations back",
                                                                 "wait for activations",
                                                                 "snapshot",
                                                                 "checkpoint write",
                                                                 "wait for snapshot",
                                                                 "mirror"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kNames.size() ? kNames[number] : "?";
}

/// One piece of work of one device.
struct PassRecord {
  /// Microbatch or window, counted from the start of the run; for a checkpoint (IsForCheckpoint)
  /// its training step, from 1.
  std::int64_t unit = 0;
  std::int64_t round = 0;     ///< training step or evaluation, counted from the start of the run
  std::int64_t begin_ns = 0;  ///< steady clock of the process that owns the device
  std::int64_t end_ns = 0;    ///< the same clock
  std::int32_t stage = 0;     ///< index into the stage names of the trace (StageGraph's numbering)
  std::int32_t dp = 0;        ///< replica
  std::int32_t rank = 0;      ///< device
  WorkKind kind = WorkKind::kForward;

  friend bool operator==(const PassRecord&, const PassRecord&) = default;
};

}  // namespace troupe
