// Reads back what WritePerfetto wrote: arrows and counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A message that was drawn: its send, and the handler that its arrow leads to.
struct DrawnArrow {
  std::uint64_t id = 0;  ///< of the message
  std::string from;      ///< actors, as the two ends of the arrow name them
  std::string to;
  std::int64_t sent_ns = 0;  ///< as drawn
  std::int64_t begin_ns = 0;
  std::int64_t recorded_begin_ns = 0;
};

struct PerfettoFile {
  std::vector<DrawnArrow> arrows;  ///< only those with both ends
  std::size_t starts = 0;          ///< of arrows
  std::size_t ends = 0;
  /// By path, "/n0/memory": time and value.
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> counters;
};

PerfettoFile ReadPerfetto(std::string_view content);

}  // namespace troupe
