#include "schedule/lint.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "schedule/action_index.hpp"

namespace troupe {
namespace {

using Place = ActionIndex::Place;

std::int64_t CostOf(ActionKind kind) {
  if (!Computes(kind)) return 0;
  return kind == ActionKind::kBackward ? 2 : 1;
}

/// Runs a table, every row as far as possible.
class TableRun {
 public:
  using Cost = std::int64_t (*)(ActionKind);

  TableRun(const ActionTable& table, const ActionIndex& index, Cost cost)
      : index_(index), cost_(cost) {
    for (const auto& actions : table.rows) {
      rows_.push_back({&actions});
      ends_.emplace_back(actions.size(), kNotOver);
    }
    waiting_.resize(rows_.size());
  }

  /// The reason why a row cannot continue; empty: all rows have ended.
  std::string Run() {
    for (std::size_t row = 0; row < rows_.size(); ++row) runnable_.push_back(row);
    while (!runnable_.empty() && problem_.empty()) {
      const std::size_t row = runnable_.back();
      runnable_.pop_back();
      Advance(row);
    }
    for (std::size_t row = 0; row < rows_.size() && problem_.empty(); ++row) {
      if (rows_[row].next < rows_[row].actions->size()) problem_ = Circle(row);
    }
    return problem_;
  }

  std::int64_t makespan() const {
    std::int64_t latest = 0;
    for (const Row& row : rows_) latest = std::max(latest, row.end);
    return latest;
  }

  std::int64_t EndOf(const Place& place) const { return ends_[place.row][place.index]; }

 private:
  static constexpr std::int64_t kNotOver = -1;

  struct Row {
    const std::vector<Action>* actions = nullptr;
    std::size_t next = 0;           ///< the current action
    std::vector<Place> needs = {};  ///< of the current action
    std::size_t met = 0;            ///< number of needs that have ended
    bool has_needs = false;         ///< `needs` belongs to `next`
    std::int64_t begin = 0;         ///< lower bound for the current action
    std::int64_t end = 0;           ///< end of the previous actions
  };

  /// Runs all actions of a row that can run.
  void Advance(std::size_t number) {
    Row& row = rows_[number];
    for (; row.next < row.actions->size(); ++row.next) {
      const Place here{number, row.next};
      if (!row.has_needs) {
        ActionIndex::Needs needs = index_.NeedsOf(here);
        problem_ = needs.lacking;
        if (!problem_.empty()) return;
        row.needs = std::move(needs.places);
        row.met = 0;
        row.begin = row.end;
        row.has_needs = true;
      }
      for (; row.met < row.needs.size(); ++row.met) {
        const Place& need = row.needs[row.met];
        if (EndOf(need) == kNotOver) return Wait(here, need);
        row.begin = std::max(row.begin, EndOf(need));
      }
      row.has_needs = false;
      row.end = row.begin + cost_(index_.At(here).kind);
      Complete(here, row.end);
    }
  }

  void Wait(const Place& here, const Place& need) {
    if (need.row == here.row) {
      problem_ = index_.Where(here) + " before " + ToString(index_.At(need));
      return;
    }
    waiting_[need.row][need.index].push_back(here.row);
  }

  void Complete(const Place& here, std::int64_t end) {
    ends_[here.row][here.index] = end;
    const auto woken = waiting_[here.row].find(here.index);
    if (woken == waiting_[here.row].end()) return;
    runnable_.insert(runnable_.end(), woken->second.begin(), woken->second.end());
    waiting_[here.row].erase(woken);
  }

  /// Every blocked row waits for a later action of another blocked row, so following the waits must
  /// return to a row already seen.
  std::string Circle(std::size_t row) const {
    std::set<std::size_t> been;
    while (been.insert(row).second) row = rows_[row].needs[rows_[row].met].row;
    std::string text = "deadlock: ";
    constexpr int kShown = 6;
    const std::size_t first = row;
    int shown = 0;
    do {
      const Place& awaited = rows_[row].needs[rows_[row].met];
      if (shown < kShown) {
        text += (shown == 0 ? "" : ", ") + index_.Where({row, rows_[row].next}) + " waits for " +
                index_.Describe(awaited);
      }
      ++shown;
      row = awaited.row;
    } while (row != first);
    return text + (shown > kShown ? ", ... (" + std::to_string(shown) + " rows)" : "");
  }

  const ActionIndex& index_;
  Cost cost_;
  std::vector<Row> rows_;
  std::vector<std::vector<std::int64_t>> ends_;  ///< by row, then action
  std::vector<std::unordered_map<std::size_t, std::vector<std::size_t>>>
      waiting_;  ///< rows, by action
  std::vector<std::size_t> runnable_;
  std::string problem_;
};

/// Computes the most microbatches that each row keeps. Returns the first excess; empty: none.
std::string CountActivations(const ActionTable& table, const ActionIndex& index,
                             std::int64_t max_activations, TableFacts& facts) {
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::int64_t kept = 0;
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < table.rows[row].size(); ++i) {
      const ActionKind kind = table.rows[row][i].kind;
      if (kind == ActionKind::kForward) ++kept;
      if (kind == ActionKind::kBackward || kind == ActionKind::kWeight) --kept;
      peak = std::max(peak, kept);
      if (max_activations <= 0 || kept <= max_activations) continue;
      return index.Where({row, i}) + " is kept with " + std::to_string(kept - 1) +
             " others, expected at most " + std::to_string(max_activations) + " in all";
    }
    facts.peak_activations.push_back(peak);
  }
  return "";
}

}  // namespace

LintResult Lint(const ActionTable& table, std::int64_t max_activations) {
  const ActionIndex index(table);
  LintResult result{index.problem(), {}};
  if (!result.problem.empty()) return result;
  TableRun run(table, index, CostOf);
  result.problem = run.Run();
  if (!result.problem.empty()) return result;
  TableFacts& facts = result.facts;
  result.problem = CountActivations(table, index, max_activations, facts);
  facts.ranks = static_cast<int>(table.rows.size());
  facts.stages = index.num_stages();
  facts.microbatches = index.num_units();
  facts.makespan = run.makespan();
  std::int64_t busy = 0;
  for (const auto& row : table.rows) {
    for (const Action& action : row) busy += CostOf(action.kind);
  }
  const double all = static_cast<double>(facts.makespan) * facts.ranks;
  facts.bubble = all > 0 ? 1.0 - static_cast<double>(busy) / all : 0.0;
  return result;
}

std::string AlignColumns(ActionTable& table) {
  const ActionIndex index(table);
  if (!index.problem().empty()) return index.problem();
  TableRun run(table, index, [](ActionKind) { return std::int64_t{1}; });
  const std::string problem = run.Run();
  if (!problem.empty()) return problem;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t i = 0; i < table.rows[row].size(); ++i) {
      table.rows[row][i].column = static_cast<int>(run.EndOf({row, i}) - 1);
    }
  }
  return "";
}

}  // namespace troupe
