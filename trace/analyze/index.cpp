#include "trace/analyze/index.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

const std::string kUnknownActor = "unknown actor";
const std::string kUnknownType = "?";

const ActorId kNoActor;

}  // namespace

bool IsPass(WorkKind kind) {
  return kind == WorkKind::kForward || kind == WorkKind::kBackward || kind == WorkKind::kWeight;
}

TraceIndex::TraceIndex(const RunTrace& trace)
    : trace_(&trace),
      work_of_(trace.messages.size(), -1),
      previous_(trace.messages.size(), -1),
      round_of_(trace.messages.size(), -1),
      handled_at_(trace.actors.size() + 1, 0) {
  for (const TraceActor& actor : trace.actors) {
    if (actor.id.kind == ActorKind::kDevice) process_of_rank_[actor.id.rank] = actor.process;
  }
  for (std::size_t w = 0; w < trace.work.size(); ++w) {
    const TraceWork& work = trace.work[w];
    end_ns_ = std::max({end_ns_, work.pass.begin_ns, work.pass.end_ns});
    if (work.message >= 0) work_of_[At(work.message)] = static_cast<int>(w);
  }
  work_in_.resize(trace.work.size());
  std::iota(work_in_.begin(), work_in_.end(), 0);
  std::stable_sort(work_in_.begin(), work_in_.end(),
                   [&](int a, int b) { return work(a).pass.round < work(b).pass.round; });
  for (std::size_t i = 0; i < trace.messages.size(); ++i) {
    const TraceMessage& m = trace.messages[i];
    end_ns_ = std::max({end_ns_, m.arrived_ns, m.begin_ns, m.end_ns});
    round_of_[i] = m.round;
    if (m.round < 0 && work_of_[i] >= 0) round_of_[i] = work(work_of_[i]).pass.round;
    // A cause was sent before its effects, so its round is already known. With badly aligned clocks
    // the round stays unknown.
    if (round_of_[i] < 0 && m.cause >= 0) round_of_[i] = round_of_[At(m.cause)];
    if (m.begin_ns >= 0 && m.receiver >= 0) ++handled_at_[At(m.receiver) + 1];
  }
  for (std::size_t a = 1; a < handled_at_.size(); ++a) handled_at_[a] += handled_at_[a - 1];
  handled_.resize(handled_at_.back());
  std::vector<std::size_t> next(handled_at_.begin(), handled_at_.end() - 1);
  for (std::size_t i = 0; i < trace.messages.size(); ++i) {
    const TraceMessage& m = trace.messages[i];
    if (m.begin_ns >= 0 && m.receiver >= 0) handled_[next[At(m.receiver)]++] = static_cast<int>(i);
  }
  for (std::size_t a = 0; a + 1 < handled_at_.size(); ++a) {
    const auto begin = handled_.begin() + static_cast<std::ptrdiff_t>(handled_at_[a]);
    const auto end = handled_.begin() + static_cast<std::ptrdiff_t>(handled_at_[a + 1]);
    std::stable_sort(begin, end,
                     [&](int x, int y) { return message(x).begin_ns < message(y).begin_ns; });
    for (auto at = begin; at != end; ++at) {
      if (at != begin) previous_[At(*at)] = *(at - 1);
    }
  }
  places_ = Places(*this);
}

std::span<const int> TraceIndex::HandledBy(int actor) const {
  if (actor < 0) return {};
  const std::size_t begin = handled_at_[At(actor)];
  return std::span(handled_).subspan(begin, handled_at_[At(actor) + 1] - begin);
}

std::span<const int> TraceIndex::WorkIn(std::int64_t round) const {
  const auto begin =
      std::lower_bound(work_in_.begin(), work_in_.end(), round,
                       [&](int w, std::int64_t wanted) { return work(w).pass.round < wanted; });
  const auto end = std::upper_bound(begin, work_in_.end(), round, [&](std::int64_t wanted, int w) {
    return wanted < work(w).pass.round;
  });
  return {begin, end};
}

std::int64_t PartOfTime(std::int64_t ns, const PassRecord& pass, std::int64_t from_ns,
                        std::int64_t until_ns) {
  const std::int64_t whole_ns = pass.end_ns - pass.begin_ns;
  if (ns <= 0 || whole_ns <= 0 || until_ns <= from_ns) return 0;
  const double share = static_cast<double>(until_ns - from_ns) / static_cast<double>(whole_ns);
  return static_cast<std::int64_t>(static_cast<double>(std::min(ns, whole_ns)) *
                                   std::min(share, 1.0));
}

int TraceIndex::TripsOf(int i) const {
  const TraceMessage& m = message(i);
  const auto process = [&](int actor) { return trace_->actors[At(actor)].process; };
  const bool crosses = m.sender >= 0 && m.receiver >= 0 && process(m.sender) != process(m.receiver);
  return (crosses ? 1 : 0) + (m.asked ? 2 : 0);
}

int TraceIndex::ProcessOf(const TraceWork& work) const {
  const auto process = process_of_rank_.find(work.pass.rank);
  return process == process_of_rank_.end() ? 0 : process->second;
}

const std::string& TraceIndex::TypeName(int i) const {
  const int type = message(i).type;
  if (type < 0 || At(type) >= trace_->types.size()) return kUnknownType;
  return trace_->types[At(type)];
}

const std::string& TraceIndex::ActorName(int actor) const {
  if (actor < 0 || At(actor) >= trace_->actors.size()) return kUnknownActor;
  return trace_->actors[At(actor)].name;
}

const ActorId& TraceIndex::IdOf(int actor) const {
  if (actor < 0 || At(actor) >= trace_->actors.size()) return kNoActor;
  return trace_->actors[At(actor)].id;
}

const StageId* TraceIndex::StageAt(int stage) const {
  return stage < 0 || At(stage) >= trace_->stages.size() ? nullptr : &trace_->stages[At(stage)];
}

std::string TraceIndex::StageName(int stage) const {
  const StageId* const id = StageAt(stage);
  return id == nullptr ? "stage " + std::to_string(stage) : ToString(*id);
}

std::string TraceIndex::ModuleOf(int stage) const {
  const StageId* const id = StageAt(stage);
  return id == nullptr ? StageName(stage) : id->module;
}

}  // namespace troupe
