#include "trace/analyze/places.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "layout/at.hpp"
#include "trace/analyze/steps.hpp"

namespace troupe {
namespace {

/// Limits values from files, so that differences do not overflow.
bool IsUnit(std::int64_t unit) { return unit >= 0 && unit < std::int64_t{1} << 60; }

}  // namespace

Places::Places(const TraceIndex& index) {
  std::map<std::string, int> modules;
  for (const StageId& stage : index.trace().stages) {
    const auto number = static_cast<int>(modules.size());
    module_of_stage_.push_back(modules.try_emplace(stage.module, number).first->second);
  }
  modules_.resize(modules.size());
  CollectUnits(index.trace());
  CollectSteps(index);
}

void Places::CollectUnits(const RunTrace& trace) {
  std::map<std::pair<int, std::int64_t>, Units> seen;
  for (const TraceWork& work : trace.work) {
    const int module = ModuleOfStage(work.pass.stage);
    if (module < 0) continue;
    if (work.pass.kind == WorkKind::kExchange) modules_[At(module)].windows = true;
    if (!IsPass(work.pass.kind) || !IsUnit(work.pass.unit)) continue;
    const std::int64_t unit = work.pass.unit;
    const Units fresh{work.pass.round, unit, unit};
    Units& units = seen.try_emplace({module, work.pass.round}, fresh).first->second;
    units.first = std::min(units.first, unit);
    units.last = std::max(units.last, unit);
  }
  for (const auto& [key, units] : seen) modules_[At(key.first)].rounds.push_back(units);
}

void Places::CollectSteps(const TraceIndex& index) {
  // The trace may end within a round that is neither a complete step nor an evaluation; its
  // messages hold its kind.
  for (const TraceMessage& m : index.trace().messages) {
    if (m.round >= 0 && m.step >= 0) steps_[m.round] = m.step;
  }
  const Steps steps(index);
  for (const StepSpan& span : steps.all()) steps_[span.round] = span.step;
}

UnitPlace Places::Of(const PassRecord& pass) const {
  if (IsForCheckpoint(pass.kind)) return {};  // its unit is a step
  return Find(ModuleOfStage(pass.stage), pass.unit, pass.round);
}

UnitPlace Places::OfUnit(std::int64_t unit, bool window) const {
  const int module = AnyModule(window);
  return module < 0 ? UnitPlace{} : Find(module, unit, -1);
}

int Places::AnyModule(bool windows) const {
  const auto found = std::ranges::find(modules_, windows, &Module::windows);
  return found == modules_.end() ? -1 : static_cast<int>(found - modules_.begin());
}

UnitPlace Places::OfMessage(const TraceIndex& index, int message) const {
  const TraceMessage& m = index.message(message);
  return IsUnit(m.unit) ? Find(ModuleOfMessage(index, message), m.unit, m.round) : UnitPlace{};
}

UnitPlace Places::Find(int module, std::int64_t unit, std::int64_t round) const {
  if (!IsUnit(unit)) return {};
  // Boundaries count microbatches, like any module that does not work in windows.
  if (module < 0) module = AnyModule(false);
  if (module < 0) return {};
  const Module& of = modules_[At(module)];
  auto units = std::ranges::lower_bound(of.rounds, round, {}, &Units::round);
  if (units == of.rounds.end() || units->round != round) {
    units = std::ranges::upper_bound(of.rounds, unit, {}, &Units::first);
    if (units == of.rounds.begin()) return {};
    --units;
  }
  if (unit < units->first) return {};
  if (unit > units->last && units->round == of.rounds.back().round) return Beyond(of, unit);
  return {StepOf(units->round), unit - units->first, of.windows};
}

/// The place of a unit that has not run yet: in the last round, or in the next one.
UnitPlace Places::Beyond(const Module& module, std::int64_t unit) const {
  const Units& last = module.rounds.back();
  const std::int64_t step = StepOf(last.round);
  std::int64_t length = last.count();
  for (const Units& units : module.rounds) {
    const bool alike = (StepOf(units.round) > 0) == (step > 0);
    if (alike) length = std::max(length, units.count());
  }
  const std::int64_t number = unit - last.first;
  if (number < length) return {step, number, module.windows};
  return {StepOf(last.round + 1), number - length, module.windows};
}

int Places::ModuleOfMessage(const TraceIndex& index, int message) const {
  constexpr int kHops = 4;  // device, lock step, the actor that decides
  for (int hop = 0; hop < kHops && message >= 0; ++hop) {
    const TraceMessage& m = index.message(message);
    const int work = index.WorkOf(message);
    if (work >= 0) return ModuleOfStage(index.work(work).pass.stage);
    for (const int actor : {m.receiver, m.sender}) {
      const int stage = index.IdOf(actor).stage;
      if (stage >= 0) return ModuleOfStage(stage);
    }
    if (const TraceLink* const link = index.LinkOf(message)) {
      const bool phase = index.KindOf(m.receiver) == ActorKind::kPhase ||
                         index.KindOf(m.sender) == ActorKind::kPhase;
      return ModuleOfStage(phase ? link->from : link->to);
    }
    message = m.cause;
  }
  return -1;
}

int Places::ModuleOfStage(int stage) const {
  return stage < 0 || At(stage) >= module_of_stage_.size() ? -1 : module_of_stage_[At(stage)];
}

std::int64_t Places::StepOf(std::int64_t round) const {
  const auto found = steps_.find(round);
  return found == steps_.end() ? UnitPlace::kUnknown : found->second;
}

}  // namespace troupe
