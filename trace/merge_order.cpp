#include <algorithm>
#include <limits>
#include <utility>

#include "layout/at.hpp"
#include "trace/merge_parts.hpp"

namespace troupe {
namespace {

/// The earliest time in the trace. The first message sent need not have it: the clocks of two hosts
/// are fitted, and a damaged record may hold any time.
std::int64_t EarliestOf(const RunTrace& trace) {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const TraceMessage& message : trace.messages) {
    earliest = std::min({earliest, message.sent_ns, message.arrived_ns});
    for (const std::int64_t ns : {message.begin_ns, message.end_ns}) {
      if (ns >= 0) earliest = std::min(earliest, ns);
    }
  }
  for (const TraceWork& work : trace.work) {
    earliest = std::min({earliest, work.pass.begin_ns, work.pass.end_ns});
  }
  return trace.messages.empty() && trace.work.empty() ? 0 : earliest;
}

}  // namespace

void SortByTime(RunTrace& trace) {
  std::vector<int> order(trace.messages.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return trace.messages[At(a)].sent_ns < trace.messages[At(b)].sent_ns;
  });
  std::vector<int> place(order.size());
  std::vector<TraceMessage> sorted;
  sorted.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[At(order[i])] = static_cast<int>(i);
    sorted.push_back(trace.messages[At(order[i])]);
  }
  trace.messages = std::move(sorted);
  const auto moved = [&](int& index) {
    if (index >= 0) index = place[At(index)];
  };
  for (TraceWork& work : trace.work) moved(work.message);
  const std::int64_t origin = EarliestOf(trace);
  std::stable_sort(
      trace.work.begin(), trace.work.end(),
      [](const TraceWork& a, const TraceWork& b) { return a.pass.begin_ns < b.pass.begin_ns; });
  for (TraceMessage& message : trace.messages) {
    moved(message.cause);
    message.sent_ns -= origin;
    message.arrived_ns -= origin;
    if (message.begin_ns >= 0) message.begin_ns -= origin;
    if (message.end_ns >= 0) message.end_ns -= origin;
  }
  for (TraceWork& work : trace.work) {
    work.pass.begin_ns -= origin;
    work.pass.end_ns -= origin;
  }
  trace.origin_ns = origin;
}

}  // namespace troupe
