// What a process notes of every message and of every piece of work of a device: the one record that
// rings, trace files and analyses share. docs/traces.md has the layout of the file.
//
// A message's record is written when it is sent, and completed when its handler begins and ends:
// what is in a mailbox, and which handler runs, can be read at any time, and after a crash.
#pragma once

#include <cstdint>
#include <type_traits>

namespace troupe {

enum class RecordKind : std::uint8_t {
  kMessage = 1,
  kWork = 2,  ///< of a device: `cause` is the message whose handling it was
  /// An answer left for an actor of another process: `sender`, `receiver`, `request` and `cause`
  /// say which. Requests need no record where they leave: their sender's handling says which it
  /// sent.
  kAnswered = 3,
};

/// What a message is to the one that waits for it.
enum class MessageRole : std::uint8_t {
  kOther = 0,  ///< nothing of these, or an older trace, which does not say
  kActivation,
  kGradient,
  kInput,
  kForwardDone,
  kBackwardDone,
  kWeightsDone,
  kReplicaDone,  ///< a replica has run its last backward of the step
  kGradientsReduced,
  kNorm,  ///< of all gradients, on its way to the Director or back
  kUpdated,
  kStepBegin,
  kStepEnd,
  kExchanged,   ///< rows between ranks that two modules share
  kStateMoved,  ///< of an encoder that offloads
  kCheckpoint,  ///< shards of a checkpoint are written, or read
};
inline constexpr std::uint8_t kNumMessageRoles = 16;

/// Numbers of actors are unique in the job: the process in the upper 12 bits, 0 = nobody known.
using ActorNumber = std::uint32_t;
inline constexpr int kActorBits = 20;

struct TraceRecord {
  std::uint64_t number = 0;  ///< place among all that the process ever noted, from 1; 0: never used
  std::uint64_t id = 0;      ///< of the message: process + 1 in the upper 16 bits, then `number`
  std::uint64_t cause = 0;  ///< id of the message whose handling sent it; 0: none, or not known yet
  std::int64_t sent_ns = 0;     ///< steady clock of the process that notes it, as are all times
  std::int64_t arrived_ns = 0;  ///< in the mailbox; in one process the time at which it was sent
  std::int64_t begin_ns = 0;    ///< of its handler, or of the work; 0: not yet
  std::int64_t end_ns = 0;      ///< 0: not yet
  std::int64_t unit = -1;  ///< microbatch or window, counted from the start of the run; -1: none;
                           ///< of work as PassRecord::unit
  /// Of the tensors it names. Of work: its time on a core (trace/core_time.hpp).
  std::int64_t bytes = 0;
  /// Number that the sender gave its request, or that this answers; 0 for what is neither. Of work:
  /// its time without a core (trace/core_time.hpp).
  std::uint64_t request = 0;
  /// Requests that its handling sent: (first_request, last_request]. Of work, which sends none, the
  /// KiB reserved when it ended and the most that were in use until then (trace/work_memory.hpp).
  std::uint32_t first_request = 0;
  std::uint32_t last_request = 0;
  ActorNumber sender = 0;
  ActorNumber receiver = 0;
  std::int32_t round = -1;    ///< training step or evaluation, counted from the start; -1: none
  std::int32_t stage = -1;    ///< of work: StageGraph's number
  std::int16_t dp = -1;       ///< of work: replica
  std::int16_t rank = -1;     ///< of work: device
  std::uint16_t type = 0;     ///< of the message: index into the file's type names
  std::int16_t credits = -1;  ///< that the edge has left after this message; -1: no edge
  std::uint16_t mailbox = 0;  ///< messages that waited in the mailbox before it
  RecordKind kind = RecordKind::kMessage;
  std::uint8_t work = 0;    ///< WorkKind, of work
  std::uint8_t answer = 0;  ///< 1: of the message: it is the answer to `request`
  std::uint8_t gpu = 0;     ///< of work: 1 + the GPU whose memory it says; 0: its process's own
  MessageRole role = MessageRole::kOther;  ///< of the message
  std::uint8_t asked = 0;  ///< of the message: 1: the bytes that it brings were asked for
  /// Of a message that says which training step its round is: that step, from 1; 0: it says that
  /// the round is an evaluation; -1: it does not say.
  std::int32_t step = -1;
  std::uint32_t memory_kib = 0;  ///< of work: in use when it ended; 0: not known

  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

static_assert(std::has_unique_object_representations_v<TraceRecord>, "no byte is left unwritten");
static_assert(sizeof(TraceRecord) == 128, "two cache lines, and the record size of trace files");
static_assert(std::is_trivially_copyable_v<TraceRecord>);

}  // namespace troupe
