#include "trace/export/lint.hpp"

#include <algorithm>

#include "trace/analyze/table.hpp"

namespace troupe {

void LintReport::Add(const std::string& rule, const std::string& where, const std::string& text) {
  if (++found[rule] <= kShown) findings.push_back({rule, where, text});
}

LintReport Lint(std::string_view content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (content[first] == '{' || content[first] == '[')) {
    return LintJson(content);
  }
  return LintProto(content);
}

std::string Format(const LintReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding.where + ": " + finding.rule + ": " + finding.text + '\n';
  }
  for (const auto& [rule, count] : report.found) {
    if (count > LintReport::kShown) {
      text += "... " + rule + ": " + std::to_string(count - LintReport::kShown) + " more\n";
    }
  }
  std::int64_t all = 0;
  for (const auto& [rule, count] : report.found) all += count;
  return text + report.format + ": " + std::to_string(report.events) + " events, " +
         std::to_string(report.slices) + " slices, " + std::to_string(report.flows) + " flows, " +
         std::to_string(report.tracks) + " tracks, " + std::to_string(report.counters) +
         " counter points: " +
         (all == 0 ? "nothing an importer would trip over"
                   : std::to_string(all) + (all == 1 ? " finding" : " findings")) +
         '\n';
}

bool IsClean(std::string_view text) {
  const std::string quoted = JsonString(text);
  // What was not taken as it is has been escaped or replaced.
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }) &&
         (quoted.find("\xEF\xBF\xBD") == std::string::npos ||
          text.find("\xEF\xBF\xBD") != std::string_view::npos);
}

std::vector<std::pair<Nesting::Slice, Nesting::Slice>> Nesting::Overlaps() {
  // Outer ones first where they begin together.
  std::stable_sort(slices_.begin(), slices_.end(), [](const Slice& a, const Slice& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  std::vector<std::pair<Slice, Slice>> overlaps;
  std::vector<Slice> open;
  for (const Slice& slice : slices_) {
    while (!open.empty() && open.back().end_ns <= slice.begin_ns) open.pop_back();
    if (!open.empty() && open.back().end_ns < slice.end_ns)
      overlaps.emplace_back(open.back(), slice);
    open.push_back(slice);
  }
  return overlaps;
}

}  // namespace troupe
