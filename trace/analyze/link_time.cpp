#include "trace/analyze/link_time.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "trace/analyze/median.hpp"

namespace troupe {
namespace {

class Ways {
 public:
  Ways(const RunTrace& trace, int link, std::string from, std::string to)
      : trace_(trace), from_("stage " + from + " dp"), to_("stage " + to + " dp") {
    for (const TraceMessage& m : trace.messages) {
      if (m.link == link && IsTold(m, "Slice")) NoteSlice(m);
    }
    for (const TraceMessage& m : trace.messages) {
      if (m.link == link && IsTold(m, "Activation")) NoteActivation(m);
    }
  }

  std::optional<std::int64_t> Time() const {
    if (!direct_.empty()) return Median(direct_);
    if (leaving_.empty() && arriving_.empty()) return std::nullopt;
    return (leaving_.empty() ? 0 : Median(leaving_)) + (arriving_.empty() ? 0 : Median(arriving_));
  }

 private:
  bool IsTold(const TraceMessage& m, const char* type) const {
    return m.unit >= 0 && m.begin_ns >= 0 && m.sent_ns > 0 &&
           trace_.types[static_cast<std::size_t>(m.type)] == type;
  }
  bool Is(int actor, const std::string& stage) const {
    return actor >= 0 && trace_.actors[static_cast<std::size_t>(actor)].name.starts_with(stage);
  }

  void NoteSlice(const TraceMessage& m) {
    std::int64_t& last = last_slice_ns_[{m.receiver, m.unit}];
    last = std::max(last, m.sent_ns);
  }

  void NoteActivation(const TraceMessage& m) {
    const bool leaves = Is(m.sender, from_);
    const bool arrives = Is(m.receiver, to_);
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
  std::string from_;
  std::string to_;
  std::map<std::pair<int, std::int64_t>, std::int64_t> last_slice_ns_;  ///< by leader and unit
  std::vector<std::int64_t> direct_;                                    ///< stage to stage
  std::vector<std::int64_t> leaving_;                                   ///< stage to leader
  std::vector<std::int64_t> arriving_;  ///< last slice sent to stage
};

}  // namespace

std::optional<std::int64_t> LinkTime(const RunTrace& trace, const std::string& from,
                                     const std::string& to) {
  for (std::size_t l = 0; l < trace.links.size(); ++l) {
    const TraceLink& link = trace.links[l];
    const auto is = [&](int stage, const std::string& name) {
      return stage >= 0 && stage < std::ssize(trace.stages) &&
             trace.stages[static_cast<std::size_t>(stage)] == name;
    };
    if (!is(link.from, from) || !is(link.to, to)) continue;
    const auto time = Ways(trace, static_cast<int>(l), from, to).Time();
    // Clocks of two machines are fitted, not equal.
    return time ? std::optional(std::max<std::int64_t>(*time, 0)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace troupe
