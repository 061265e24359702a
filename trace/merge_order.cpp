#include <algorithm>
#include <utility>

#include "layout/at.hpp"
#include "trace/merge_parts.hpp"

namespace troupe {
namespace {}  // namespace

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
  std::int64_t origin = trace.messages.empty() ? 0 : trace.messages.front().sent_ns;
  for (TraceWork& work : trace.work) {
    moved(work.message);
    if (origin == 0 || work.pass.begin_ns < origin) origin = work.pass.begin_ns;
  }
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
