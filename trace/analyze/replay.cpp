#include "trace/analyze/replay.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "schedule/simulate.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// Stage, kind, and unit, counted from the first of the round.
using PassKey = std::tuple<int, PassKind, std::int64_t>;

struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

MessageRole AnswerTo(WorkKind kind) {
  return kind == WorkKind::kForward    ? MessageRole::kForwardDone
         : kind == WorkKind::kBackward ? MessageRole::kBackwardDone
                                       : MessageRole::kWeightsDone;
}

/// The message by which the stage learned that its command for `work` is done, found through the
/// answers of device and lock step. -1: it is not in the trace.
class Answers {
 public:
  explicit Answers(const TraceIndex& index) : index_(index) {
    const auto& messages = index.trace().messages;
    for (int i = 0; At(i) < messages.size(); ++i) {
      const TraceMessage& m = messages[At(i)];
      if (index.KindOf(m.sender) != ActorKind::kLockStep || m.begin_ns < 0) continue;
      const auto [first, added] = answers_.try_emplace({m.receiver, m.role, m.unit}, i);
      if (!added && m.begin_ns < messages[At(first->second)].begin_ns) first->second = i;
    }
  }

  /// From the stage's decision to its answer; the pass itself if that is not in the trace.
  Span CommandOf(const TraceWork& work) const {
    const Span own{work.pass.begin_ns, work.pass.end_ns};
    if (work.message < 0) return own;
    const TraceMessage& command = index_.message(work.message);
    if (command.cause < 0) return own;
    const TraceMessage& set = index_.message(command.cause);
    const auto found = answers_.find({set.sender, AnswerTo(work.pass.kind), set.unit});
    if (found == answers_.end()) return own;
    return {set.sent_ns, index_.message(found->second).begin_ns};
  }

 private:
  const TraceIndex& index_;
  /// By receiver, role and unit.
  std::map<std::tuple<int, MessageRole, std::int64_t>, int> answers_;
};

Simulation Simulated(const RuleInputs& rule, const std::map<PassKey, std::int64_t>& took,
                     std::int64_t units) {
  const auto takes = [&](int stage, const Pass& pass) {
    const auto found = took.find({stage, pass.kind, pass.unit});
    return found == took.end() ? 0 : found->second;
  };
  return Simulate(rule.graph, rule.schedule, takes, units);
}

std::string Against(std::int64_t simulated_ns, std::int64_t measured_ns) {
  return Duration(simulated_ns) + " (" + (simulated_ns < measured_ns ? "" : "+") +
         PercentOf(simulated_ns - measured_ns, measured_ns) + ")";
}

}  // namespace

Replay ReplayStep(const TraceIndex& index, std::int64_t round, const RuleInputs& rule,
                  const OrderComparison& comparison) {
  Replay replay;
  replay.not_simulated = comparison.not_predicted;
  const Answers answers(index);
  std::map<int, std::int64_t> first_unit;
  Span all;
  for (const int w : index.WorkIn(round)) {
    const PassRecord& pass = index.work(w).pass;
    if (!IsPass(pass.kind)) continue;
    const auto [at, fresh] = first_unit.try_emplace(pass.stage, pass.unit);
    at->second = std::min(at->second, pass.unit);
    if (all.end_ns == 0 || pass.begin_ns < all.begin_ns) all.begin_ns = pass.begin_ns;
    all.end_ns = std::max(all.end_ns, pass.end_ns);
  }
  replay.measured_ns = all.end_ns - all.begin_ns;
  if (!replay.not_simulated.empty()) return replay;
  std::map<PassKey, std::int64_t> passes;
  std::map<PassKey, std::int64_t> commands;
  std::set<std::int64_t> units;
  for (const int w : index.WorkIn(round)) {
    const TraceWork& work = index.work(w);
    if (!IsPass(work.pass.kind)) continue;
    const std::int64_t unit = work.pass.unit - first_unit.at(work.pass.stage);
    const PassKey key{work.pass.stage, PassKindOf(work.pass.kind), unit};
    const Span command = answers.CommandOf(work);
    auto& pass_ns = passes[key];
    auto& command_ns = commands[key];
    pass_ns = std::max(pass_ns, work.pass.end_ns - work.pass.begin_ns);
    command_ns = std::max(command_ns, command.end_ns - command.begin_ns);
    units.insert(unit);
  }
  const auto count = static_cast<std::int64_t>(units.size());
  replay.passes_ns = Simulated(rule, passes, count).makespan_ns;
  const Simulation simulation = Simulated(rule, commands, count);
  replay.commands_ns = simulation.makespan_ns;
  for (const ComparedOrder& order : comparison.orders) {
    ++replay.orders;
    if (OrderLike(order.ran, simulation) != order.ran.text) ++replay.other_orders;
  }
  return replay;
}

std::string Format(const Replay& replay) {
  std::string text = "its passes took " + Duration(replay.measured_ns);
  if (!replay.not_simulated.empty()) return text + "\n";
  return text + "; simulated with their own durations " +
         Against(replay.passes_ns, replay.measured_ns) + ", from each command to its answer " +
         Against(replay.commands_ns, replay.measured_ns) +
         (replay.other_orders == 0 ? ", in the same orders\n"
                                   : ", with " + std::to_string(replay.other_orders) + " of " +
                                         std::to_string(replay.orders) + " orders different\n");
}

}  // namespace troupe
