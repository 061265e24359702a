#include <algorithm>

#include "trace/merge_parts.hpp"

namespace troupe {

bool Window::Holds(const TraceRecord& record) const {
  if (begin_ns == 0) return true;
  if (record.round >= 0 && record.round <= last_cut_round) return false;
  return std::max(record.sent_ns, record.begin_ns) >= begin_ns;
}

Window WholeWindow(const std::vector<TraceFile>& files) {
  Window window;
  for (const TraceFile& file : files) {
    if (file.noted <= file.capacity || file.records.empty()) continue;
    const TraceRecord& oldest = file.records.front();
    window.begin_ns =
        std::max(window.begin_ns, std::max(oldest.sent_ns, oldest.begin_ns) + file.clock_offset_ns);
  }
  if (window.begin_ns == 0) return window;
  for (const TraceFile& file : files) {
    for (const TraceRecord& record : file.records) {
      if (record.kind == RecordKind::kWork &&
          record.begin_ns + file.clock_offset_ns < window.begin_ns) {
        window.last_cut_round = std::max<std::int64_t>(window.last_cut_round, record.round);
      }
    }
  }
  return window;
}

}  // namespace troupe
