#include "tests/trace/export/lint/lint.hpp"

namespace troupe {

void LintReport::Add(const std::string& rule, const std::string& where, const std::string& text) {
  if (++found[rule] <= kShown) findings.push_back({rule, where, text});
}

namespace {

std::string Count(std::int64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

}  // namespace

std::string Format(const LintReport& report) {
  if (!report.no_timeline.empty()) return "no timeline: " + report.no_timeline + '\n';
  std::string text;
  for (const LintFinding& finding : report.findings) {
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
  text += Count(report.events, "event", "events") + " on " +
          Count(report.tracks, "track", "tracks") + ", among them " +
          Count(report.slices, "slice", "slices") + " and " +
          Count(report.counters, "counter point", "counter points") + "; " +
          Count(report.flows, "arrow starts and ends", "arrows start and end") + ": ";
  if (all == 0) return text + "nothing an importer would trip over\n";
  return text + Count(all, "finding", "findings") + " (" + rules + ")\n";
}

}  // namespace troupe
