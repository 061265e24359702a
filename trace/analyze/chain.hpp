// What a moment in a trace was waiting for, followed backwards: handler, way, handler, way, ... The
// pieces lie end to end in time, so whatever is added up over them adds up to the whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

enum class SegmentKind : std::uint8_t {
  kHandler,  ///< `actor` handled `message`, or did `work`
  kQueue,    ///< `message` lay in the mailbox of `actor`
  kTransit,  ///< `message` was on its way to `actor`
  kUnknown,  ///< what came before is not in the trace
};

struct Segment {
  SegmentKind kind = SegmentKind::kHandler;
  int actor = -1;
  int message = -1;
  int work = -1;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// From `until_ns`, in or at the beginning of the handling of `message`, back to `from_ns`, oldest
/// first. A message that had to wait for a device that was working leads to that work; any other
/// leads to the handling that sent it.
std::vector<Segment> ChainTo(const TraceIndex& index, int message, std::int64_t from_ns,
                             std::int64_t until_ns);

/// How long of the segment the work that it is wanted a core and had none, as far as known.
std::int64_t WithoutCore(const TraceIndex& index, const Segment& segment);

/// A device writes a shard of a checkpoint, or the answers are gathered, which ends with the
/// Director making the files a checkpoint.
bool IsOfCheckpoint(const TraceIndex& index, const Segment& segment);

/// How long things usually take in a trace: medians of all that have ended, in ns; 0: none has.
class Usual {
 public:
  explicit Usual(const TraceIndex& index);

  std::int64_t Work(const PassRecord& pass) const;  ///< of the stage and kind
  std::int64_t Of(const Segment& segment) const;    ///< a queue is usually empty: 0
  /// The same for a step: 0 of a checkpoint where most steps have none, however long it takes.
  std::int64_t InStep(const Segment& segment) const;
  /// "80.0 us" of InStep's number; "none" of a checkpoint where most steps have none.
  std::string TextInStep(const Segment& segment) const;

 private:
  bool IsRare(const Segment& segment) const;
  std::int64_t Handling(int message) const;  ///< of the type by the kind of receiver
  std::int64_t Transit(int message) const;   ///< of the type, in one process or between two
  std::size_t WorkKey(const PassRecord& pass) const;
  std::size_t HandlingKey(int message) const;
  std::size_t TransitKey(int message) const;

  const TraceIndex* index_;
  bool most_steps_have_checkpoints_ = false;
  std::vector<std::int64_t> work_;
  std::vector<std::int64_t> handling_;
  std::vector<std::int64_t> transit_;
};

}  // namespace troupe
