#include "trace/analyze/index.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

const std::string kUnknownActor = "unknown actor";
const std::string kUnknownType = "?";

const ActorId kNoActor;

}  // namespace

TraceIndex::TraceIndex(const RunTrace& trace)
    : trace_(&trace),
      work_of_(trace.messages.size(), -1),
      previous_(trace.messages.size(), -1),
      round_of_(trace.messages.size(), -1),
      handled_(trace.actors.size()) {
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
  std::ranges::stable_sort(work_in_, {}, [&](int w) { return work(w).pass.round; });
  for (std::size_t i = 0; i < trace.messages.size(); ++i) {
    const TraceMessage& m = trace.messages[i];
    end_ns_ = std::max({end_ns_, m.arrived_ns, m.begin_ns, m.end_ns});
    round_of_[i] = m.round;
    if (m.round < 0 && work_of_[i] >= 0) round_of_[i] = work(work_of_[i]).pass.round;
    // A cause was sent before its effects, so its round is already known. With badly aligned clocks
    // the round stays unknown.
    if (round_of_[i] < 0 && m.cause >= 0) round_of_[i] = round_of_[At(m.cause)];
    if (m.begin_ns >= 0 && m.receiver >= 0) handled_[At(m.receiver)].push_back(static_cast<int>(i));
  }
  for (std::vector<int>& handled : handled_) {
    std::ranges::stable_sort(handled, {}, [&](int i) { return message(i).begin_ns; });
    for (std::size_t at = 1; at < handled.size(); ++at) {
      previous_[At(handled[at])] = handled[at - 1];
    }
  }
  places_ = Places(*this);
}

std::span<const int> TraceIndex::WorkIn(std::int64_t round) const {
  const auto round_of = [&](int w) { return work(w).pass.round; };
  return {std::ranges::lower_bound(work_in_, round, {}, round_of),
          std::ranges::upper_bound(work_in_, round, {}, round_of)};
}

std::int64_t PartOfTime(std::int64_t ns, const PassRecord& pass, std::int64_t from_ns,
                        std::int64_t until_ns) {
  const std::int64_t whole_ns = pass.end_ns - pass.begin_ns;
  if (ns <= 0 || whole_ns <= 0 || until_ns <= from_ns) return 0;
  const double share = static_cast<double>(until_ns - from_ns) / static_cast<double>(whole_ns);
  return static_cast<std::int64_t>(static_cast<double>(std::min(ns, whole_ns)) *
                                   std::min(share, 1.0));
}

int TraceIndex::LastWorkIn(std::int64_t round) const {
  const auto all = WorkIn(round);
  const auto last = std::ranges::max_element(all, {}, [&](int w) { return work(w).pass.end_ns; });
  return last == all.end() ? -1 : *last;
}

bool TraceIndex::IsBetweenProcesses(int i) const {
  const TraceMessage& m = message(i);
  return m.sender >= 0 && m.receiver >= 0 &&
         trace_->actors[At(m.sender)].process != trace_->actors[At(m.receiver)].process;
}

int TraceIndex::TripsOf(int i) const {
  return (IsBetweenProcesses(i) ? 1 : 0) + (message(i).asked ? 2 : 0);
}

const TraceLink* TraceIndex::LinkOf(int i) const {
  const int link = message(i).link;
  return link < 0 || At(link) >= trace_->links.size() ? nullptr : &trace_->links[At(link)];
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
