// What a device ran, and when, as analyses see it (trace/record.hpp is how it lies in a file).
#pragma once

#include <cstdint>

namespace troupe {

/// What kind of work a device did. Never 0, so that a record of zeros (a block that a crash left
/// unwritten) is known not to be one.
enum class WorkKind : std::uint8_t {
  kForward = 1,
  kBackward = 2,
  kReduce = 3,      ///< gradients summed over replicas
  kUpdate = 4,      ///< optimizer step
  kExchange = 5,    ///< boundary rows exchanged within a colocated group
  kWeight = 6,      ///< the weights' part of a backward that was split
  kOffload = 7,     ///< state of an encoder copied off its device, beside what that computes
  kRestore = 8,     ///< and back
  kCheckpoint = 9,  ///< a shard of a checkpoint written, before the round that it delays
};

inline constexpr std::uint8_t kNumWorkKinds = 9;

/// Copies run beside a device's other work, everything else one after the other; but sums of
/// gradients may run beside what other modules of the rank compute.
constexpr bool IsCopy(WorkKind kind) {
  return kind == WorkKind::kOffload || kind == WorkKind::kRestore;
}

/// "F", "B", "W", "reduce", "update", "exchange", "offload", "restore", "checkpoint"; "?" for a
/// value that is none of them.
constexpr const char* ToString(WorkKind kind) {
  switch (kind) {
    case WorkKind::kForward:
      return "F";
    case WorkKind::kBackward:
      return "B";
    case WorkKind::kReduce:
      return "reduce";
    case WorkKind::kUpdate:
      return "update";
    case WorkKind::kExchange:
      return "exchange";
    case WorkKind::kWeight:
      return "W";
    case WorkKind::kOffload:
      return "offload";
    case WorkKind::kRestore:
      return "restore";
    case WorkKind::kCheckpoint:
      return "checkpoint";
  }
  return "?";
}

/// One piece of work of one device.
struct PassRecord {
  /// Microbatch or window, counted from the start of the run; of a checkpoint the training step
  /// that it is of, from 1.
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
