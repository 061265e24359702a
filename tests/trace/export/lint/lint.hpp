// Checks a Perfetto trace (TrackEvent protobuf) for parts that importers drop, reverse or draw in
// the wrong place without a message.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct LintFinding {
  std::string rule;   ///< "flow-order"
  std::string where;  ///< "packet 7"
  std::string text;
};

struct LintReport {
  std::string no_timeline;    ///< the reason if the file is not a timeline; else empty
  std::int64_t events = 0;    ///< all of them: slices' begins and ends, instants, counters, names
  std::int64_t slices = 0;    ///< begun
  std::int64_t flows = 0;     ///< arrows that start, and end after that
  std::int64_t tracks = 0;    ///< that are named or have slices
  std::int64_t counters = 0;  ///< points
  std::vector<LintFinding> findings;          ///< at most kShown of each rule
  std::map<std::string, std::int64_t> found;  ///< by rule, all of them

  static constexpr std::int64_t kShown = 3;
  void Add(const std::string& rule, const std::string& where, const std::string& text);
};

/// Never throws, whatever the file holds.
LintReport Lint(std::string_view content);

/// One line per finding, then the counts. One line if the file is not a timeline.
std::string Format(const LintReport& report);

}  // namespace troupe
