#include "schedule/round_evaluator.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "layout/at.hpp"

namespace troupe {

RoundEvaluator::RoundEvaluator(const StageGraph& graph, const Schedule& schedule,
                               std::int64_t microbatches)
    : microbatches_(microbatches) {
  const std::size_t stages = graph.stages().size();
  if (schedule.rules.size() != stages) {
    throw std::invalid_argument("evaluator: expected " + std::to_string(stages) + " rules, got " +
                                std::to_string(schedule.rules.size()));
  }
  if (!schedule.devices.empty() || !schedule.orders.empty() || !schedule.windows.empty()) {
    throw std::invalid_argument("evaluator: expected stages that share no devices");
  }
  for (const StageLink& link : graph.links()) links_.push_back({link.from, link.to});
  if (!schedule.link_ns.empty()) {
    const auto [least, most] = std::ranges::minmax(schedule.link_ns);
    if (schedule.link_ns.size() != links_.size() || least != most || least < 0) {
      throw std::invalid_argument("evaluator: expected the same time, at least 0, for every link");
    }
    link_ns_ = least;
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const StageRule& rule = schedule.rules[stage];
    const bool known = rule.kind == RuleKind::k1F1B || rule.kind == RuleKind::kGpipe;
    if (!known || rule.splits_backward) {
      throw std::invalid_argument("evaluator: expected 1f1b or gpipe on every stage");
    }
    Node& node = nodes_.emplace_back();
    node.rule = rule;
    node.in = graph.stages()[stage].in;
    node.out = graph.stages()[stage].out;
    node.runs_backward = schedule.runs_backward.empty() || schedule.runs_backward[stage];
  }
  ends_ns_.resize(stages);
  running_.resize(stages);
  is_touched_.resize(stages);
}

void RoundEvaluator::Touch(int stage) {
  if (is_touched_[At(stage)] != 0) return;
  is_touched_[At(stage)] = 1;
  touched_.push_back(stage);
}

void RoundEvaluator::Reset(const PassTimes& times) {
  touched_.clear();
  transits_.clear();
  num_arrived_ = 0;
  for (Link& link : links_) link.arrived = link.answered = 0;
  std::ranges::fill(is_touched_, 0);
  std::ranges::fill(ends_ns_, kNoBound);
  for (int stage = 0; At(stage) < nodes_.size(); ++stage) {
    Node& node = nodes_[At(stage)];
    node.counters = {};
    node.counters.horizon = microbatches_;
    if (node.in.empty()) node.counters.activations = microbatches_;
    node.left_ns = 0;
    for (const std::int64_t ns : times.forward_ns[At(stage)]) node.left_ns += ns;
    if (node.runs_backward) {
      for (const std::int64_t ns : times.backward_ns[At(stage)]) node.left_ns += ns;
    }
    Touch(stage);
  }
}

bool RoundEvaluator::Decide(const PassTimes& times, std::int64_t now_ns, std::int64_t bound) {
  for (const int stage : touched_) {
    is_touched_[At(stage)] = 0;
    Node& node = nodes_[At(stage)];
    const auto pass = NextPass(node.counters, node.rule);
    if (!pass) continue;
    // The stage has this work left and does one pass at a time.
    if (node.left_ns >= bound - now_ns) return false;
    node.counters.busy = true;
    CountStarted(node.counters, *pass);
    const auto& takes = pass->kind == PassKind::kForward ? times.forward_ns : times.backward_ns;
    const std::int64_t takes_ns = takes[At(stage)][static_cast<std::size_t>(pass->unit)];
    node.left_ns -= takes_ns;
    ends_ns_[At(stage)] = now_ns + takes_ns;
    running_[At(stage)] = pass->kind;
  }
  touched_.clear();
  return true;
}

void RoundEvaluator::Answer(int link) {
  ++links_[At(link)].answered;
  Node& source = nodes_[At(links_[At(link)].from)];
  std::int64_t least = microbatches_;
  for (const int out : source.out) least = std::min(least, links_[At(out)].answered);
  source.counters.gradients = least;
  if (!source.runs_backward) source.counters.backwards = least;
  Touch(links_[At(link)].from);
}

void RoundEvaluator::Arrive(int link) {
  ++links_[At(link)].arrived;
  Node& reader = nodes_[At(links_[At(link)].to)];
  std::int64_t least = microbatches_;
  for (const int in : reader.in) least = std::min(least, links_[At(in)].arrived);
  reader.counters.activations = least;
  Touch(links_[At(link)].to);
}

void RoundEvaluator::Send(int link, bool answer, std::int64_t now_ns) {
  if (link_ns_ > 0) {
    transits_.push_back({now_ns + link_ns_, link, answer});
  } else {
    answer ? Answer(link) : Arrive(link);
  }
}

void RoundEvaluator::Finish(int stage, std::int64_t now_ns) {
  Node& node = nodes_[At(stage)];
  node.counters.busy = false;
  ends_ns_[At(stage)] = kNoBound;
  Touch(stage);
  const bool forward = running_[At(stage)] == PassKind::kForward;
  if (forward) {
    if (node.out.empty()) {
      ++node.counters.gradients;
      if (!node.runs_backward) node.counters.backwards = node.counters.gradients;
    }
    for (const int link : node.out) Send(link, false, now_ns);
  }
  for (const int link : node.in) {
    // Without a gradient to wait for, a stage is answered when the forward of the receiver ends.
    const bool with_forward = !nodes_[At(links_[At(link)].from)].runs_backward;
    if (with_forward == forward) Send(link, true, now_ns);
  }
}

std::int64_t RoundEvaluator::Makespan(const PassTimes& times, std::int64_t bound) {
  Reset(times);
  std::int64_t now_ns = 0;
  std::int64_t makespan_ns = 0;  // the last tensor may arrive later
  while (true) {
    if (!Decide(times, now_ns, bound)) return bound;
    std::int64_t next_ns = *std::ranges::min_element(ends_ns_);
    if (num_arrived_ < transits_.size()) next_ns = std::min(next_ns, transits_[num_arrived_].at_ns);
    if (next_ns == kNoBound) break;
    now_ns = next_ns;
    for (int stage = 0; At(stage) < nodes_.size(); ++stage) {
      if (ends_ns_[At(stage)] != now_ns) continue;
      Finish(stage, now_ns);
      makespan_ns = now_ns;
    }
    for (; num_arrived_ < transits_.size(); ++num_arrived_) {
      const Transit& transit = transits_[num_arrived_];
      if (transit.at_ns != now_ns) break;
      transit.answer ? Answer(transit.link) : Arrive(transit.link);
    }
  }
  for (const Node& node : nodes_) {
    if (!AllStarted(node.counters, node.rule)) return kNoBound;
  }
  return makespan_ns;
}

}  // namespace troupe
