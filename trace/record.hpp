// The record of a message or of a device's work, shared by rings, trace files and analyses.
// trace/recorder.hpp has the layout of the file.
//
// A message's record is written when it is sent, and completed when its handler begins and ends.
// So a reader sees the contents of mailboxes and the running handlers at any time, also after a
// crash.
#pragma once

#include <cstdint>
#include <type_traits>

namespace troupe {

enum class RecordKind : std::uint8_t {
  kMessage = 1,
  kWork = 2,  ///< of a device; `cause` is the message whose handler ran it
  /// An answer left for an actor of another process. `sender`, `receiver`, `request` and `cause`
  /// identify it. Requests need no such record: the record of the handler that sent them has their
  /// numbers.
  kAnswered = 3,
};

/// The meaning of a message for the actor that waits for it.
enum class MessageRole : std::uint8_t {
  kOther = 0,  ///< none of these, or unknown (an older trace)
  kActivation,
  kGradient,
  kInput,
  kForwardDone,
  kBackwardDone,
  kWeightsDone,
  kReplicaDone,  ///< a replica has run its last backward of the step
  kGradientsReduced,
  kNorm,  ///< of gradients, sent to the Director or back
  kUpdated,
  kStepBegin,
  kStepEnd,
  kExchanged,   ///< rows between ranks that two modules share
  kStateMoved,  ///< of an encoder that offloads
  kCheckpoint,  ///< shards of a checkpoint are written, or read
  // What took longest of a sample that a feed machine has prepared, in the order of DataPhase.
  kSampleRead,
  kSampleTokenized,
  kSampleDecoded,
  kSampleTransferred,
};
inline constexpr std::uint8_t kNumMessageRoles = 20;
inline bool IsOfMachine(MessageRole role) { return role >= MessageRole::kSampleRead; }

/// Unique in the job: the process is in the upper 12 bits. 0: unknown.
using ActorNumber = std::uint32_t;
inline constexpr int kActorBits = 20;

struct TraceRecord {
  std::uint64_t number = 0;  ///< sequence number within the process, from 1; 0: never used
  std::uint64_t id = 0;      ///< messages: process + 1 in the upper 16 bits, then `number`
  std::uint64_t cause = 0;   ///< id of the message whose handler sent it; 0: none, or not yet known
  std::int64_t sent_ns = 0;  ///< like all times on the steady clock of the recording process
  std::int64_t arrived_ns = 0;  ///< in the mailbox; within a process equal to sent_ns
  std::int64_t begin_ns = 0;    ///< of its handler, or of the work; 0: not yet
  std::int64_t end_ns = 0;      ///< 0: not yet
  /// Microbatch or window, counted from the start of the run; -1: none. Work: PassRecord::unit.
  std::int64_t unit = -1;
  /// Bytes of its tensors. Work: its time on a core (trace/work_usage.hpp).
  std::int64_t bytes = 0;
  /// The sender's number of this request, or of the request that this answers; 0: neither. Work:
  /// its time without a core (trace/work_usage.hpp).
  std::uint64_t request = 0;
  /// Requests sent by its handler: (first_request, last_request]. Work sends none: the KiB
  /// reserved at its end, and the peak in use so far (trace/work_usage.hpp).
  std::uint32_t first_request = 0;
  std::uint32_t last_request = 0;
  ActorNumber sender = 0;
  ActorNumber receiver = 0;
  std::int32_t round = -1;  ///< training step or evaluation, counted from the start; -1: none
  /// Work: StageGraph's number. Messages: the source of the samples they are about; -1: of none.
  std::int32_t stage = -1;
  std::int16_t dp = -1;       ///< work: replica
  std::int16_t rank = -1;     ///< work: device
  std::uint16_t type = 0;     ///< messages: index into the file's type names
  std::int16_t credits = -1;  ///< remaining on the edge after this message; -1: no edge
  std::uint16_t mailbox = 0;  ///< messages in the mailbox before it
  RecordKind kind = RecordKind::kMessage;
  std::uint8_t work = 0;    ///< work: WorkKind
  std::uint8_t answer = 0;  ///< messages: 1 if it answers `request`
  std::uint8_t gpu = 0;     ///< work: 1 + the GPU of its memory values; 0: the process's memory
  MessageRole role = MessageRole::kOther;  ///< messages
  std::uint8_t asked = 0;  ///< messages: 1 if the receiver had to request its tensor bytes
  /// Messages: the training step of the round, from 1; 0: the round is an evaluation; -1: unknown.
  std::int32_t step = -1;
  std::uint32_t memory_kib = 0;  ///< work: in use at its end; 0: unknown

  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

static_assert(std::has_unique_object_representations_v<TraceRecord>, "no byte is left unwritten");
static_assert(sizeof(TraceRecord) == 128, "two cache lines, and the record size of trace files");
static_assert(std::is_trivially_copyable_v<TraceRecord>);

}  // namespace troupe
