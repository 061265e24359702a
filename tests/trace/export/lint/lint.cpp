#include "tests/trace/export/lint/lint.hpp"

#include <algorithm>
#include <utility>

#include "trace/analyze/table.hpp"

namespace troupe {

void LintReport::Add(const std::string& rule, const std::string& where, const std::string& text) {
  if (++found[rule] <= kShown) findings.push_back({rule, where, text});
}

namespace {

/// What files begin with that people take for a timeline.
const char* KindOf(std::string_view content) {
  const std::pair<std::string_view, const char*> kinds[] = {
      {"\x89PNG", "a PNG picture"},
      {"\xFF\xD8\xFF", "a JPEG picture"},
      {"GIF8", "a GIF picture"},
      {"%PDF", "a PDF document"},
      {"\x1F\x8B", "gzip: unpack it first"},
      {"PK\x03\x04", "a ZIP archive: unpack it first"},
      {"SQLite format 3", "an SQLite database"},
      {"TRPTRACE", "what a process of a run noted: `troupe trace export` makes a timeline of it"},
      {"<", "a page or other markup"}};
  for (const auto& [begin, kind] : kinds) {
    if (content.substr(0, begin.size()) == begin) return kind;
  }
  return nullptr;
}

std::string Count(std::int64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

}  // namespace

LintReport Lint(std::string_view content) {
  LintReport report;
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (content.empty()) {
    report.no_timeline = "it is empty";
  } else if (const char* const kind = KindOf(content)) {
    report.no_timeline = std::string("it is ") + kind;
  } else if (first != std::string_view::npos && (content[first] == '{' || content[first] == '[')) {
    report = LintJson(content);
  } else {
    report = LintProto(content);
  }
  if (!report.no_timeline.empty()) {
    report.findings.clear();
    report.found = {{"no-timeline", 1}};
  }
  return report;
}

std::string Format(const LintReport& report) {
  if (!report.no_timeline.empty()) return "no timeline: " + report.no_timeline + '\n';
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding.where + ": " + finding.rule + ": " + finding.text + '\n';
  }
  std::int64_t all = 0;
  std::string rules;
  for (const auto& [rule, count] : report.found) {
    all += count;
    rules += (rules.empty() ? "" : ", ") + std::to_string(count) + " " + rule;
    if (count > LintReport::kShown) {
      text += "... " + rule + ": " + std::to_string(count - LintReport::kShown) + " more\n";
    }
  }
  text += report.format + ": " + Count(report.events, "event", "events") + " on " +
          Count(report.tracks, "track", "tracks") + ", among them " +
          Count(report.slices, "slice", "slices") + " and " +
          Count(report.counters, "counter point", "counter points") + "; " +
          Count(report.flows, "arrow starts and ends", "arrows start and end") + ": ";
  if (all == 0) return text + "nothing an importer would trip over\n";
  return text + Count(all, "finding", "findings") + " (" + rules + ")\n";
}

bool IsClean(std::string_view text) { return CleanText(text) == text; }

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
