#include "schedule/action_index.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {
namespace {

using Place = ActionIndex::Place;

/// Kind, stage and microbatch as one number: stages are below 2^16, microbatches below 2^21.
std::uint64_t KeyOf(ActionKind kind, int stage, std::int64_t unit) {
  return (static_cast<std::uint64_t>(kind) << 48) | (static_cast<std::uint64_t>(stage) << 32) |
         static_cast<std::uint64_t>(unit + 1);
}

std::string TextOf(int stage, ActionKind kind, std::int64_t unit) {
  return ToString(Action{kind, stage, unit, 0});
}

}  // namespace

ActionIndex::ActionIndex(const ActionTable& table) : table_(table) {
  for (std::size_t row = 0; row < table.rows.size() && problem_.empty(); ++row) AddRow(row);
  LinkStages();
  if (problem_.empty()) FindMissing();
}

void ActionIndex::AddRow(std::size_t row) {
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

void ActionIndex::LinkStages() {
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

void ActionIndex::FindMissing() {
  if (units_ == 0) problem_ = "expected passes such as 0F0, got none";
  // Stops at the first missing action, so it takes time linear in the number of actions.
  for (int stage = 0; stage < stages_; ++stage) {
    for (std::int64_t unit = 0; unit < units_ && problem_.empty(); ++unit) FindMissing(stage, unit);
    if (!problem_.empty()) return;
  }
}

void ActionIndex::FindMissing(int stage, std::int64_t unit) {
  const auto text = [&](ActionKind kind) { return TextOf(stage, kind, unit); };
  const auto whole = Find(ActionKind::kBackward, stage, unit);
  const auto input = Find(ActionKind::kInput, stage, unit);
  const auto weight = Find(ActionKind::kWeight, stage, unit);
  if (!Find(ActionKind::kForward, stage, unit)) {
    problem_ = "incomplete: no row has " + text(ActionKind::kForward);
  } else if (!whole && !input) {
    problem_ =
        "incomplete: no row has " + text(ActionKind::kBackward) + " or " + text(ActionKind::kInput);
  } else if (whole && (input || weight)) {
    problem_ =
        Where(input ? *input : *weight) + ", but " + Describe(*whole) + " is the whole of it";
  } else if (input && !weight) {
    problem_ = "incomplete: no row has " + text(ActionKind::kWeight) + ", and " + Describe(*input) +
               " is only a part";
  }
}

std::string ActionIndex::Where(const Place& place) const {
  return "row " + std::to_string(place.row) + " column " + std::to_string(At(place).column) + ": " +
         ToString(At(place));
}

std::string ActionIndex::Describe(const Place& place) const {
  return ToString(At(place)) + " (row " + std::to_string(place.row) + " column " +
         std::to_string(At(place).column) + ")";
}

std::optional<Place> ActionIndex::Find(ActionKind kind, int stage, std::int64_t unit) const {
  const auto found = places_.find(KeyOf(kind, stage, unit));
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

/// The pass that computes the gradient of the stage's input: its backward, or that part of it.
std::optional<Place> ActionIndex::FindBackward(int stage, std::int64_t unit) const {
  const auto whole = Find(ActionKind::kBackward, stage, unit);
  return whole ? whole : Find(ActionKind::kInput, stage, unit);
}

/// Adds the passes of the previous (next) stages that a forward (backward) needs, or their
/// receives.
void ActionIndex::NeedFrom(const Place& place, bool forward, Needs& needs) const {
  const Action& action = At(place);
  const auto& neighbours = forward ? before_ : after_;
  const auto found = neighbours.find(action.stage);
  if (found == neighbours.end()) return;
  for (const int other : found->second) {
    const bool crosses = communicates_ && home_.at(other) != place.row;
    const ActionKind receive = forward ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward;
    const auto needed = crosses   ? Find(receive, action.stage, action.unit)
                        : forward ? Find(ActionKind::kForward, other, action.unit)
                                  : FindBackward(other, action.unit);
    if (needed) needs.places.push_back(*needed);
    if (!needed) {
      needs.lacking = Where(place) + " without " + TextOf(action.stage, receive, action.unit);
    }
  }
}

/// Adds the sends of other rows that a receive needs.
void ActionIndex::NeedSent(const Place& place, bool forward, Needs& needs) const {
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
    const auto sent = Find(send, other, action.unit);
    if (sent) needs.places.push_back(*sent);
    if (!sent) needs.lacking = Where(place) + " without " + TextOf(other, send, action.unit);
  }
}

ActionIndex::Needs ActionIndex::NeedsOf(const Place& place) const {
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
      own(Find(ActionKind::kInput, action.stage, action.unit));
      break;
    case ActionKind::kSendForward:
      own(Find(ActionKind::kForward, action.stage, action.unit));
      break;
    case ActionKind::kSendBackward:
      own(FindBackward(action.stage, action.unit));
      break;
    case ActionKind::kReceiveForward:
      NeedSent(place, true, needs);
      break;
    case ActionKind::kReceiveBackward:
      NeedSent(place, false, needs);
      break;
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kReduceGradients:
      break;
  }
  return needs;
}

}  // namespace troupe
