// Follows a wait backwards through a trace: handler, transit, handler, transit, ... The segments
// are contiguous in time, so sums over them add up to the whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

enum class SegmentKind : std::uint8_t {
  kHandler,  ///< `actor` handled `message`, or did `work`
  kQueue,    ///< `message` waited in the mailbox of `actor`
  kTransit,  ///< `message` was in transit to `actor`
  kUnknown,  ///< earlier events are not in the trace
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

/// The chain from `until_ns`, during or at the beginning of the handler of `message`, back to
/// `from_ns`, oldest segment first. A message that waited for a busy device leads to that device's
/// work; any other leads to the handler that sent it.
std::vector<Segment> ChainTo(const TraceIndex& index, int message, std::int64_t from_ns,
                             std::int64_t until_ns);

/// The time during the segment in which its work was runnable without a core; 0 if unknown.
std::int64_t WithoutCore(const TraceIndex& index, const Segment& segment);

/// The segment belongs to a checkpoint: a device writes a shard, or an actor gathers the answers
/// until the Director commits the checkpoint.
bool IsOfCheckpoint(const TraceIndex& index, const Segment& segment);

/// Usual durations in a trace: medians of everything that has ended, in ns; 0: nothing has.
class Usual {
 public:
  explicit Usual(const TraceIndex& index);

  std::int64_t Work(const PassRecord& pass) const;  ///< by stage and kind
  std::int64_t Of(const Segment& segment) const;    ///< 0 for a queue, which is usually empty
  /// Like Of, but 0 for a checkpoint if most steps have none.
  std::int64_t InStep(const Segment& segment) const;
  /// InStep as text, "80.0 us"; "none" for a checkpoint if most steps have none.
  std::string TextInStep(const Segment& segment) const;

 private:
  bool IsRare(const Segment& segment) const;
  std::int64_t Handling(int message) const;  ///< by type and kind of receiver
  std::int64_t Transit(int message) const;   ///< by type, within a process or between two
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
