// Follows a wait backwards through a trace: handler, transit, handler, transit, ... The segments
// are contiguous in time, so sums over them add up to the whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

enum class SegmentKind : std::uint8_t {
  kHandler,    ///< `actor` handled `message`, or did `work`
  kQueue,      ///< `message` waited in the mailbox of `actor`
  kTransit,    ///< `message` was in transit to `actor`
  kElsewhere,  ///< a feed machine made what `message` brings to `actor`
  kUnknown,    ///< earlier events are not in the trace
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

/// The rows of a table: every segment, but adjacent short ones as one row.
std::vector<std::span<const Segment>> Folded(std::span<const Segment> chain,
                                             const std::function<bool(const Segment&)>& is_short);

/// "F of language.s0 (step 39 mb 1)", "Slice over vision>language in transit from ...".
std::string Describe(const TraceIndex& index, const Segment& segment);
/// The same for a row of Folded: "7 short steps, up to device 3".
std::string Describe(const TraceIndex& index, std::span<const Segment> row);

/// The time during the segment in which its work was runnable without a core; 0 if unknown.
std::int64_t WithoutCore(const TraceIndex& index, const Segment& segment);

/// The segment belongs to a checkpoint: a device writes a shard, or an actor gathers the answers
/// until the Director commits the checkpoint.
bool IsOfCheckpoint(const TraceIndex& index, const Segment& segment);

/// Usual durations in a trace: medians of everything that has ended, in ns; 0: nothing has.
class Usual {
 public:
  explicit Usual(const TraceIndex& index);

  /// Work by stage and kind; handlers by type and kind of receiver; transits by type, within a
  /// process or between two. 0 for a queue, which is usually empty.
  std::int64_t Of(const Segment& segment) const;
  /// Like Of, but 0 for a checkpoint if most steps have none.
  std::int64_t InStep(const Segment& segment) const;
  /// InStep as text, "80.0 us"; "none" for a checkpoint if most steps have none.
  std::string TextInStep(const Segment& segment) const;

 private:
  bool IsRare(const Segment& segment) const;
  using WorkKey = std::pair<std::int32_t, WorkKind>;
  using HandlingKey = std::tuple<int, ActorKind, int>;
  using TransitKey = std::pair<int, bool>;
  static WorkKey KeyOf(const PassRecord& pass) { return {pass.stage, pass.kind}; }
  HandlingKey HandlingKeyOf(int i) const {
    const int receiver = index_->message(i).receiver;
    const ActorKind kind = index_->KindOf(receiver);
    // Devices run the passes of one stage; other stages take other times.
    return {index_->message(i).type, kind, kind == ActorKind::kDevice ? receiver : -1};
  }
  TransitKey TransitKeyOf(int i) const {
    return {index_->message(i).type, index_->IsBetweenProcesses(i)};
  }

  const TraceIndex* index_;
  bool most_steps_have_checkpoints_ = false;
  std::map<WorkKey, std::int64_t> work_;
  std::map<HandlingKey, std::int64_t> handling_;
  std::map<TransitKey, std::int64_t> transit_;
  std::map<HandlingKey, std::int64_t> elsewhere_;
};

}  // namespace troupe
