// What importers of timelines drop, reverse or draw in the wrong place without a word, checked on
// what the exporters write: JSON of Chrome's trace events, and TrackEvent protobuf.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct Finding {
  std::string rule;   ///< "flow-order"
  std::string where;  ///< "event 12", "packet 7"
  std::string text;
};

struct LintReport {
  std::string format;         ///< "json", "protobuf"
  std::string no_timeline;    ///< why the file is none at all: then nothing else is said of it
  std::int64_t events = 0;    ///< all of them: slices' begins and ends, instants, counters, names
  std::int64_t slices = 0;    ///< begun, and in JSON ended
  std::int64_t flows = 0;     ///< arrows that start, and end after that
  std::int64_t tracks = 0;    ///< that are named or have slices
  std::int64_t counters = 0;  ///< points
  std::vector<Finding> findings;              ///< at most kShown of each rule
  std::map<std::string, std::int64_t> found;  ///< by rule, all of them

  static constexpr std::int64_t kShown = 3;
  void Add(const std::string& rule, const std::string& where, const std::string& text);
};

/// Which it is, the first byte says. Never throws for what is in the file.
LintReport Lint(std::string_view content);
LintReport LintJson(std::string_view content);
LintReport LintProto(std::string_view content);

/// One line per finding; then what there is. Of what is no timeline, one line.
std::string Format(const LintReport& report);

/// Text that importers choke on: control characters, bytes that are not UTF-8.
bool IsClean(std::string_view text);

/// Slices of one lane, in any order: whether each is inside every other, or does not overlap it.
class Nesting {
 public:
  struct Slice {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t event = 0;
  };
  void Add(const Slice& slice) { slices_.push_back(slice); }
  /// Pairs that overlap in part: (earlier, later) by begin.
  std::vector<std::pair<Slice, Slice>> Overlaps();

 private:
  std::vector<Slice> slices_;
};

}  // namespace troupe
