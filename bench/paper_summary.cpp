#include "bench/paper_summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <ostream>
#include <utility>

#include "bench/report.hpp"

namespace troupe::bench {
namespace {

constexpr double kPercent = 100.0;

/// The error of each row, signed.
using Errors = std::vector<std::pair<std::string, double>>;

std::string Signed(double value) { return (value < 0 ? "" : "+") + Fixed(value, 1); }

void WriteErrors(const std::string& what, const std::string& unit,
                 const std::map<Mode, Errors>& by_mode, std::ostream& out) {
  for (const auto& [mode, errors] : by_mode) {
    std::vector<double> sizes;
    std::string rows;
    for (const auto& [id, error] : errors) {
      sizes.push_back(std::abs(error));
      rows += " " + id + Signed(error);
    }
    const Summary summary = Summarize(sizes);
    out << what << ' ' << ToString(mode) << ": " << sizes.size() << " rows, median "
        << Fixed(summary.median, 2) << ' ' << unit << ", worst " << Fixed(summary.max, 1) << ' '
        << unit << ';' << rows << '\n';
  }
}

/// The best of a workload may be two modes: "H/C".
bool Right(const ContestResult& contest) {
  const std::string& best = contest.best;
  const auto slash = best.find('/');
  return contest.winner == best ||
         (slash != std::string::npos &&
          (contest.winner == best.substr(0, slash) || contest.winner == best.substr(slash + 1)));
}

void WriteContests(const std::vector<ContestResult>& contests, std::ostream& out) {
  int right = 0;
  int number = 0;
  for (const ContestResult& contest : contests) {
    if (contest.jobs.empty()) continue;
    ++number;
    right += Right(contest) ? 1 : 0;
    out << "best of " << contest.id << ": " << contest.winner << ", printed " << contest.best;
    const auto separate = contest.jobs.find(Mode::kSeparate);
    if (separate != contest.jobs.end()) {
      out << "; language layout of NC " << troupe::ToString(separate->second.language);
    }
    out << '\n';
  }
  if (number > 0) out << "best: " << right << " of " << number << " right\n";
}

}  // namespace

void WriteSummary(const std::vector<Predicted>& rows, const std::vector<ContestResult>& contests,
                  std::ostream& out) {
  std::map<Mode, Errors> times;
  std::map<Mode, Errors> gains;
  std::map<Mode, Errors> memory;
  std::map<std::string, const Predicted*> baselines;
  for (const Predicted& row : rows) {
    if (row.mode == Mode::kHomogeneous) baselines[row.id] = &row;
  }
  for (const Predicted& row : rows) {
    if (row.measured_gb) memory[row.mode].emplace_back(row.id, row.gb - *row.measured_gb);
    if (!row.measured_ms) continue;
    times[row.mode].emplace_back(row.id, kPercent * (row.ms / *row.measured_ms - 1.0));
    const auto h = baselines.find(row.id);
    if (row.mode == Mode::kHomogeneous || h == baselines.end() || !h->second->measured_ms) continue;
    gains[row.mode].emplace_back(
        row.id, kPercent * (h->second->ms / row.ms - *h->second->measured_ms / *row.measured_ms));
  }
  WriteErrors("time", "%", times, out);
  WriteErrors("gain", "points", gains, out);
  WriteErrors("memory", "GB", memory, out);
  WriteContests(contests, out);
}

}  // namespace troupe::bench
