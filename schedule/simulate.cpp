#include "schedule/simulate.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <set>
#include <stdexcept>
#include <utility>

#include "layout/at.hpp"

namespace troupe {
namespace {

/// The end of a running pass, or the arrival of a tensor in transit.
struct Ending {
  std::int64_t at_ns = 0;
  int stage = 0;
  Pass pass;
  int link = -1;        ///< the link of the tensor; -1: a pass
  bool answer = false;  ///< the tensor is a gradient
};

struct Later {
  bool operator()(const Ending& a, const Ending& b) const { return a.at_ns > b.at_ns; }
};

/// The commands that one device has received and not begun.
struct DeviceQueue {
  bool busy = false;
  std::deque<StagePass> commands;
  const DeviceOrder* order = nullptr;  ///< null: first in, first out
  std::size_t turn = 0;                ///< position in the order
};

class Simulator {
 public:
  Simulator(const StageGraph& graph, const Schedule& schedule, const PassDuration& duration,
            std::int64_t microbatches)
      : graph_(graph),
        schedule_(schedule),
        duration_(duration),
        counters_(graph.stages().size()),
        arrived_(graph.links().size()),
        answered_(graph.links().size()) {
    result_.stages.resize(counters_.size());
    int devices = 0;
    for (int stage = 0; At(stage) < counters_.size(); ++stage) {
      StageCounters& c = counters_[At(stage)];
      c.horizon = microbatches;
      if (graph.stages()[At(stage)].in.empty()) c.activations = microbatches;
      devices = std::max(devices, DeviceOf(stage) + 1);
      touched_.insert(stage);
    }
    queues_.resize(At(devices));
    for (std::size_t device = 0; device < schedule.orders.size(); ++device) {
      if (!schedule.orders[device].empty()) queues_[device].order = &schedule.orders[device];
    }
  }

  Simulation Run() {
    DecideAll(0);
    while (!running_.empty()) {
      const std::int64_t now_ns = running_.top().at_ns;
      while (!running_.empty() && running_.top().at_ns == now_ns) {
        const Ending ending = running_.top();
        running_.pop();
        if (ending.link >= 0) {
          ending.answer ? Answer(ending.link) : Arrive(ending.link);
          continue;
        }
        Finish(ending.stage, ending.pass, now_ns);
        result_.makespan_ns = now_ns;
      }
      DecideAll(now_ns);
    }
    NameBlocked();
    return std::move(result_);
  }

 private:
  int DeviceOf(int stage) const {
    return schedule_.devices.empty() ? stage : schedule_.devices[At(stage)];
  }
  bool RunsBackward(int stage) const {
    return schedule_.runs_backward.empty() || schedule_.runs_backward[At(stage)];
  }

  /// Lets every affected stage decide, and every device begin its next command.
  void DecideAll(std::int64_t now_ns) {
    std::set<int> devices;
    for (const int stage : std::exchange(touched_, {})) {
      devices.insert(DeviceOf(stage));
      StageCounters& c = counters_[At(stage)];
      const auto pass = NextPass(c, schedule_.rules[At(stage)]);
      if (!pass) continue;
      c.busy = true;
      CountStarted(c, *pass);
      queues_[At(DeviceOf(stage))].commands.push_back({stage, *pass});
    }
    for (const int device : devices) Begin(queues_[At(device)], now_ns);
  }

  void Begin(DeviceQueue& queue, std::int64_t now_ns) {
    if (queue.busy || queue.commands.empty()) return;
    auto next = queue.commands.begin();
    if (queue.order != nullptr) {
      if (queue.turn >= queue.order->size()) return;
      next = std::find(next, queue.commands.end(), (*queue.order)[queue.turn]);
      if (next == queue.commands.end()) return;
      ++queue.turn;
    }
    const StagePass command = *next;
    queue.commands.erase(next);
    queue.busy = true;
    const std::int64_t takes_ns = duration_(command.stage, command.pass);
    if (takes_ns < 0) {
      throw std::invalid_argument("simulation: " + ToString(command.pass) + " of " +
                                  graph_.StageName(command.stage) + " takes " +
                                  std::to_string(takes_ns) + " ns");
    }
    result_.stages[At(command.stage)].push_back({command.pass, now_ns, now_ns + takes_ns});
    running_.push({now_ns + takes_ns, command.stage, command.pass, -1, false});
  }

  /// The smallest of `counts` over `links`.
  static std::int64_t Least(const std::vector<int>& links,
                            const std::vector<std::int64_t>& counts) {
    const auto count_of = [&](int link) { return counts[At(link)]; };
    return count_of(*std::ranges::min_element(links, {}, count_of));
  }

  void Answer(int link) {
    ++answered_[At(link)];
    const int before = graph_.links()[At(link)].from;
    StageCounters& c = counters_[At(before)];
    c.gradients = Least(graph_.stages()[At(before)].out, answered_);
    if (!RunsBackward(before)) Retire(before);
    touched_.insert(before);
  }

  void Arrive(int link) {
    ++arrived_[At(link)];
    const int next = graph_.links()[At(link)].to;
    counters_[At(next)].activations = Least(graph_.stages()[At(next)].in, arrived_);
    touched_.insert(next);
  }

  /// Sends a tensor over the link; it arrives now, or after the link's time.
  void Send(int link, bool answer, std::int64_t now_ns) {
    const std::int64_t takes_ns = schedule_.link_ns.empty() ? 0 : schedule_.link_ns[At(link)];
    if (takes_ns > 0) {
      running_.push({now_ns + takes_ns, 0, {}, link, answer});
    } else {
      answer ? Answer(link) : Arrive(link);
    }
  }

  void Retire(int stage) {
    StageCounters& c = counters_[At(stage)];
    c.backwards = c.weights = c.gradients;
  }

  void Finish(int stage, const Pass& pass, std::int64_t now_ns) {
    const StageNode& node = graph_.stages()[At(stage)];
    counters_[At(stage)].busy = false;
    queues_[At(DeviceOf(stage))].busy = false;
    touched_.insert(stage);
    if (pass.kind == PassKind::kForward) {
      if (node.out.empty()) {
        ++counters_[At(stage)].gradients;
        if (!RunsBackward(stage)) Retire(stage);
      }
      for (const int link : node.out) Send(link, false, now_ns);
    }
    for (const int link : node.in) {
      const bool with_forward = !RunsBackward(graph_.links()[At(link)].from);
      const auto answers = with_forward ? PassKind::kForward : PassKind::kBackward;
      if (pass.kind == answers) Send(link, true, now_ns);
    }
  }

  void NameBlocked() {
    for (const DeviceQueue& queue : queues_) {
      for (const StagePass& command : queue.commands) {
        result_.blocked.push_back({command.stage, command.pass, "its turn"});
      }
    }
    for (int stage = 0; At(stage) < counters_.size(); ++stage) {
      const StageCounters& c = counters_[At(stage)];
      const StageRule& rule = schedule_.rules[At(stage)];
      if (c.busy || AllStarted(c, rule)) continue;
      // Evaluate the rule as if all inputs had arrived.
      StageCounters all = c;
      all.activations = all.gradients = c.horizon;
      const auto next = NextPass(all, rule);
      const Pass pass = next.value_or(Pass{PassKind::kForward, c.forwards});
      const char* lacks = !next                              ? "room under its limit"
                          : pass.kind == PassKind::kForward  ? "its activation"
                          : pass.kind == PassKind::kBackward ? "its gradient"
                                                             : "its backward";
      result_.blocked.push_back({stage, pass, lacks});
    }
    std::ranges::sort(result_.blocked, {}, &BlockedStage::stage);
  }

  const StageGraph& graph_;
  const Schedule& schedule_;
  const PassDuration& duration_;
  std::vector<StageCounters> counters_;
  std::vector<std::int64_t> arrived_;   ///< by link: activations received
  std::vector<std::int64_t> answered_;  ///< by link: gradients returned
  std::vector<DeviceQueue> queues_;     ///< by device
  std::set<int> touched_;               ///< stages affected by events since their last decision
  std::priority_queue<Ending, std::vector<Ending>, Later> running_;
  Simulation result_;
};

void ExpectEach(std::size_t got, std::size_t wanted, const char* what) {
  if (got == wanted) return;
  throw std::invalid_argument("simulation: expected " + std::to_string(wanted) + " " + what +
                              ", got " + std::to_string(got));
}

void Check(const StageGraph& graph, const Schedule& schedule, std::int64_t microbatches) {
  const std::size_t stages = graph.stages().size();
  ExpectEach(schedule.rules.size(), stages, "limits");
  if (!schedule.devices.empty()) ExpectEach(schedule.devices.size(), stages, "devices");
  if (!schedule.runs_backward.empty()) {
    ExpectEach(schedule.runs_backward.size(), stages, "entries in runs_backward");
  }
  for (const StageRule& rule : schedule.rules) {
    if (rule.limit >= 1) continue;
    throw std::invalid_argument("simulation: a limit is " + std::to_string(rule.limit) +
                                ", expected at least 1");
  }
  if (!schedule.link_ns.empty()) {
    ExpectEach(schedule.link_ns.size(), graph.links().size(), "times of links");
  }
  for (const std::int64_t ns : schedule.link_ns) {
    if (ns < 0)
      throw std::invalid_argument("simulation: a link takes " + std::to_string(ns) + " ns");
  }
  for (const int device : schedule.devices) {
    if (device < 0) throw std::invalid_argument("simulation: a device below 0");
  }
  if (microbatches < 0) {
    throw std::invalid_argument("simulation: " + std::to_string(microbatches) + " microbatches");
  }
}

}  // namespace

PassDuration EqualDurations(std::int64_t forward_ns, std::int64_t backward_ns,
                            std::int64_t weight_ns) {
  return [=](int, const Pass& pass) {
    if (pass.kind == PassKind::kWeight) return weight_ns;
    return pass.kind == PassKind::kForward ? forward_ns : backward_ns;
  };
}

std::vector<std::int64_t> LimitsOf(const StageGraph& graph) {
  std::vector<std::int64_t> limits;
  for (int stage = 0; At(stage) < graph.stages().size(); ++stage) {
    limits.push_back(graph.InFlightLimit(stage));
  }
  return limits;
}

std::vector<Pass> Simulation::OrderOf(int stage) const {
  std::vector<Pass> order;
  for (const TimedPass& timed : stages.at(At(stage))) order.push_back(timed.pass);
  return order;
}

std::int64_t PeakInFlight(const Simulation& simulation, int stage) {
  const auto& passes = simulation.stages.at(At(stage));
  const bool split = std::ranges::any_of(
      passes, [](const TimedPass& t) { return t.pass.kind == PassKind::kWeight; });
  const PassKind last = split ? PassKind::kWeight : PassKind::kBackward;
  std::int64_t kept = 0;
  std::int64_t peak = 0;
  for (const TimedPass& timed : passes) {  // one at a time, so their order suffices
    if (timed.pass.kind == PassKind::kForward) peak = std::max(peak, ++kept);
    if (timed.pass.kind == last) --kept;
  }
  return peak;
}

Simulation Simulate(const StageGraph& graph, const Schedule& schedule, const PassDuration& duration,
                    std::int64_t microbatches) {
  Check(graph, schedule, microbatches);
  return Simulator(graph, schedule, duration, microbatches).Run();
}

}  // namespace troupe
