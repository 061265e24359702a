#include "trace/analyze/link_time.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "layout/at.hpp"
#include "trace/analyze/median.hpp"

namespace troupe {
namespace {

class Ways {
 public:
  Ways(const RunTrace& trace, int link) : trace_(trace), link_(trace.links[At(link)]) {
    for (const TraceMessage& m : trace.messages) {
      if (m.link == link && Brings(m) && IsSlice(m)) NoteSlice(m);
    }
    for (const TraceMessage& m : trace.messages) {
      if (m.link == link && Brings(m) && !IsSlice(m)) NoteActivation(m);
    }
  }

  std::optional<std::int64_t> Time() const {
    if (!direct_.empty()) return Median(direct_);
    if (leaving_.empty() && arriving_.empty()) return std::nullopt;
    return (leaving_.empty() ? 0 : Median(leaving_)) + (arriving_.empty() ? 0 : Median(arriving_));
  }

 private:
  static bool Brings(const TraceMessage& m) {
    return m.role == MessageRole::kActivation && m.unit >= 0 && m.begin_ns >= 0 && m.sent_ns > 0;
  }
  /// A leader receives slices from the leaders at the other end; other activations travel whole.
  bool IsSlice(const TraceMessage& m) const {
    return m.receiver >= 0 && trace_.actors[At(m.receiver)].id.end == EdgeEnd::kDestination;
  }
  bool IsOf(int actor, int stage) const {
    if (actor < 0) return false;
    const ActorId& id = trace_.actors[At(actor)].id;
    return id.kind == ActorKind::kStage && id.stage == stage;
  }

  void NoteSlice(const TraceMessage& m) {
    std::int64_t& last = last_slice_ns_[{m.receiver, m.unit}];
    last = std::max(last, m.sent_ns);
  }

  void NoteActivation(const TraceMessage& m) {
    const bool leaves = IsOf(m.sender, link_.from);
    const bool arrives = IsOf(m.receiver, link_.to);
    if (leaves && arrives) {
      direct_.push_back(m.begin_ns - m.sent_ns);
    } else if (leaves) {
      leaving_.push_back(m.begin_ns - m.sent_ns);
    } else if (arrives) {
      const auto slice = last_slice_ns_.find({m.sender, m.unit});
      if (slice != last_slice_ns_.end()) arriving_.push_back(m.begin_ns - slice->second);
    }
  }

  const RunTrace& trace_;
  const TraceLink& link_;
  std::map<std::pair<int, std::int64_t>, std::int64_t> last_slice_ns_;  ///< by leader and unit
  std::vector<std::int64_t> direct_;                                    ///< stage to stage
  std::vector<std::int64_t> leaving_;                                   ///< stage to leader
  std::vector<std::int64_t> arriving_;  ///< last slice sent to stage
};

}  // namespace

std::optional<std::int64_t> LinkTime(const RunTrace& trace, const StageId& from,
                                     const StageId& to) {
  for (std::size_t l = 0; l < trace.links.size(); ++l) {
    const TraceLink& link = trace.links[l];
    const auto is = [&](int stage, const StageId& wanted) {
      return stage >= 0 && stage < std::ssize(trace.stages) && trace.stages[At(stage)] == wanted;
    };
    if (!is(link.from, from) || !is(link.to, to)) continue;
    const auto time = Ways(trace, static_cast<int>(l)).Time();
    // Clocks of two machines are fitted, not equal.
    return time ? std::optional(std::max<std::int64_t>(*time, 0)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace troupe
