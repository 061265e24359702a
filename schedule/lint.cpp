#include "schedule/lint.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace troupe {
namespace {

/// An action of a table.
struct Place {
  std::size_t row = 0;
  std::size_t index = 0;  ///< into the row's actions
};

/// Kind, stage and microbatch as one number: stages are below 2^16, microbatches below 2^21.
std::uint64_t KeyOf(ActionKind kind, int stage, std::int64_t unit) {
  return (static_cast<std::uint64_t>(kind) << 48) | (static_cast<std::uint64_t>(stage) << 32) |
         static_cast<std::uint64_t>(unit + 1);
}

std::string TextOf(int stage, ActionKind kind, std::int64_t unit) {
  return ToString(Action{kind, stage, unit, 0});
}

/// Indexes the actions of a table: the place of each, and the actions that must end before it.
class ActionIndex {
 public:
  /// `table` must outlive it. problem() returns the first fault: an action given twice, a stage on
  /// two rows, passes missing from all rows; empty: none.
  explicit ActionIndex(const ActionTable& table) : table_(table) {
    for (std::size_t row = 0; row < table.rows.size() && problem_.empty(); ++row) AddRow(row);
    LinkStages();
    if (problem_.empty()) FindMissing();
  }

  const std::string& problem() const { return problem_; }
  int num_stages() const { return stages_; }
  std::int64_t num_units() const { return units_; }
  const Action& At(const Place& place) const { return table_.rows[place.row][place.index]; }

  /// "row 2 column 14: 3B5".
  std::string Where(const Place& place) const { return CellOf(place) + ": " + ToString(At(place)); }
  /// "3B5 (row 2 column 14)".
  std::string Describe(const Place& place) const {
    return ToString(At(place)) + " (" + CellOf(place) + ")";
  }

  struct Needs {
    std::vector<Place> places;
    std::string lacking;  ///< "row 1 column 3: 3F5 without 3RECV_F5"; empty: none
  };
  /// The actions that must end before this one, including sends and receives if the file has any.
  Needs NeedsOf(const Place& place) const {
    Needs needs;
    const Action& action = At(place);
    const auto own = [&](const std::optional<Place>& other) {
      if (other) needs.places.push_back(*other);
    };
    switch (action.kind) {
      case ActionKind::kForward:
        NeedFrom(place, true, needs);
        break;
      case ActionKind::kBackward:
      case ActionKind::kInput:
        own(Find(ActionKind::kForward, action.stage, action.unit));
        NeedFrom(place, false, needs);
        break;
      case ActionKind::kWeight:
      case ActionKind::kSendBackward:
        own(FindBackward(action.stage, action.unit));
        break;
      case ActionKind::kSendForward:
        own(Find(ActionKind::kForward, action.stage, action.unit));
        break;
      case ActionKind::kReceiveForward:
      case ActionKind::kReceiveBackward:
        NeedSent(place, action.kind == ActionKind::kReceiveForward, needs);
        break;
      default:
        break;
    }
    return needs;
  }

 private:
  std::string CellOf(const Place& place) const {
    return "row " + std::to_string(place.row) + " column " + std::to_string(At(place).column);
  }

  void AddRow(std::size_t row) {
    for (std::size_t i = 0; i < table_.rows[row].size(); ++i) {
      const Action& action = table_.rows[row][i];
      const Place here{row, i};
      stages_ = std::max(stages_, action.stage + 1);
      units_ = std::max(units_, action.unit + 1);
      communicates_ = communicates_ || (!Computes(action.kind) && action.unit >= 0);
      const auto home = home_.try_emplace(action.stage, row).first->second;
      if (home != row) {
        problem_ = Where(here) + ", but stage " + std::to_string(action.stage) + " is on row " +
                   std::to_string(home);
        return;
      }
      if (action.unit < 0) continue;  // sharding may repeat
      const auto [entry, added] =
          places_.emplace(KeyOf(action.kind, action.stage, action.unit), here);
      if (added) continue;
      problem_ = Where(here) + " again, first in " + Describe(entry->second);
      return;
    }
  }

  void LinkStages() {
    std::set<std::pair<int, int>> links(table_.links.begin(), table_.links.end());
    for (int stage = 0; table_.links.empty() && stage + 1 < stages_; ++stage) {
      links.emplace(stage, stage + 1);
    }
    for (const auto& [from, to] : links) {
      stages_ = std::max({stages_, from + 1, to + 1});
      before_[to].push_back(from);
      after_[from].push_back(to);
    }
  }

  void FindMissing() {
    if (units_ == 0) problem_ = "expected passes such as 0F0, got none";
    // Stops at the first missing action, so it takes time linear in the number of actions.
    for (int stage = 0; stage < stages_ && problem_.empty(); ++stage) {
      for (std::int64_t unit = 0; unit < units_ && problem_.empty(); ++unit) {
        FindMissing(stage, unit);
      }
    }
  }

  void FindMissing(int stage, std::int64_t unit) {
    const auto text = [&](ActionKind kind) { return TextOf(stage, kind, unit); };
    const auto whole = Find(ActionKind::kBackward, stage, unit);
    const auto input = Find(ActionKind::kInput, stage, unit);
    const auto weight = Find(ActionKind::kWeight, stage, unit);
    if (!Find(ActionKind::kForward, stage, unit)) {
      problem_ = "incomplete: no row has " + text(ActionKind::kForward);
    } else if (!whole && !input) {
      problem_ = "incomplete: no row has " + text(ActionKind::kBackward) + " or " +
                 text(ActionKind::kInput);
    } else if (whole && (input || weight)) {
      problem_ =
          Where(input ? *input : *weight) + ", but " + Describe(*whole) + " is the whole of it";
    } else if (input && !weight) {
      problem_ = "incomplete: no row has " + text(ActionKind::kWeight) + ", and " +
                 Describe(*input) + " is only a part";
    }
  }

  std::optional<Place> Find(ActionKind kind, int stage, std::int64_t unit) const {
    const auto found = places_.find(KeyOf(kind, stage, unit));
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }

  /// The pass that computes the gradient of the stage's input: its backward, or that part of it.
  std::optional<Place> FindBackward(int stage, std::int64_t unit) const {
    const auto whole = Find(ActionKind::kBackward, stage, unit);
    return whole ? whole : Find(ActionKind::kInput, stage, unit);
  }

  /// Adds the passes of the previous (next) stages that a forward (backward) needs, or their
  /// receives.
  void NeedFrom(const Place& place, bool forward, Needs& needs) const {
    const Action& action = At(place);
    const auto& neighbours = forward ? before_ : after_;
    const auto found = neighbours.find(action.stage);
    if (found == neighbours.end()) return;
    for (const int other : found->second) {
      const bool crosses = communicates_ && home_.at(other) != place.row;
      const ActionKind receive =
          forward ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward;
      const auto needed = crosses   ? Find(receive, action.stage, action.unit)
                          : forward ? Find(ActionKind::kForward, other, action.unit)
                                    : FindBackward(other, action.unit);
      Add(needed, place, TextOf(action.stage, receive, action.unit), needs);
    }
  }

  /// Adds the sends of other rows that a receive needs.
  void NeedSent(const Place& place, bool forward, Needs& needs) const {
    const Action& action = At(place);
    const auto& neighbours = forward ? before_ : after_;
    const auto found = neighbours.find(action.stage);
    const ActionKind send = forward ? ActionKind::kSendForward : ActionKind::kSendBackward;
    if (found == neighbours.end()) {
      needs.lacking = Where(place) + ", but no stage sends it";
      return;
    }
    for (const int other : found->second) {
      if (home_.at(other) == place.row) continue;
      Add(Find(send, other, action.unit), place, TextOf(other, send, action.unit), needs);
    }
  }

  /// Adds `needed`; if there is none, `place` lacks `action`.
  void Add(const std::optional<Place>& needed, const Place& place, const std::string& action,
           Needs& needs) const {
    if (needed) {
      needs.places.push_back(*needed);
    } else {
      needs.lacking = Where(place) + " without " + action;
    }
  }

  const ActionTable& table_;
  std::string problem_;
  int stages_ = 0;
  std::int64_t units_ = 0;
  bool communicates_ = false;        ///< the file has sends and receives
  std::map<int, std::size_t> home_;  ///< by stage: its row
  std::map<int, std::vector<int>> before_;
  std::map<int, std::vector<int>> after_;
  std::unordered_map<std::uint64_t, Place> places_;
};

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

  std::int64_t makespan() const { return std::ranges::max(rows_, {}, &Row::end).end; }

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
