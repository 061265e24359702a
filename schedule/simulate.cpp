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
  int device = 0;                 ///< of the pass
  int link = -1;                  ///< the link of the tensor; -1: a pass
  bool answer = false;            ///< the tensor is a gradient
  std::int64_t microbatches = 0;  ///< those of the round that the tensor makes complete
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
  std::deque<StagePass> held = {};     ///< whose turn has not come
  std::set<int> ordered = {};          ///< stages that the order names

  /// Takes a command, which an order may hold back.
  void Push(const StagePass& command) {
    const bool free = order == nullptr || !ordered.contains(command.stage);
    (free ? commands : held).push_back(command);
    if (free) return;
    while (turn < order->size()) {
      const auto next = std::ranges::find(held, (*order)[turn]);
      if (next == held.end()) return;
      ++turn;
      commands.push_back(*next);
      held.erase(next);
    }
  }
};

/// A pass that some devices have not run yet.
struct OpenPass {
  std::size_t devices = 0;
  TimedPass timed;
};

class Simulator {
 public:
  Simulator(const StageGraph& graph, const Schedule& schedule, const PassDuration& duration,
            std::int64_t microbatches)
      : graph_(graph),
        schedule_(schedule),
        duration_(duration),
        microbatches_(microbatches),
        counters_(graph.stages().size()),
        arrived_(graph.links().size()),
        answered_(graph.links().size()),
        open_(graph.stages().size()) {
    result_.stages.resize(counters_.size());
    int devices = 0;
    for (int stage = 0; At(stage) < counters_.size(); ++stage) {
      StageCounters& c = counters_[At(stage)];
      c.horizon = UnitsIn(stage, microbatches);
      if (graph.stages()[At(stage)].in.empty()) c.activations = c.horizon;
      devices_.push_back(schedule.DevicesOf(stage));
      devices = std::max(devices, std::ranges::max(devices_.back()) + 1);
      touched_.insert(stage);
    }
    queues_.resize(At(devices));
    for (std::size_t device = 0; device < schedule.orders.size(); ++device) {
      if (schedule.orders[device].empty()) continue;
      queues_[device].order = &schedule.orders[device];
      for (const StagePass& at : schedule.orders[device]) queues_[device].ordered.insert(at.stage);
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
          ending.answer ? Answer(ending.link, ending.microbatches)
                        : Arrive(ending.link, ending.microbatches);
          continue;
        }
        FinishShare(ending);
        result_.makespan_ns = now_ns;
      }
      DecideAll(now_ns);
    }
    NameBlocked();
    return std::move(result_);
  }

 private:
  /// Microbatches of a unit of the stage.
  std::int64_t WindowOf(int stage) const {
    const std::int64_t window = schedule_.windows.empty() ? 1 : schedule_.windows[At(stage)];
    return window > 0 ? window : std::max<std::int64_t>(microbatches_, 1);
  }
  /// The units of the stage that are complete with the first `microbatches` of the round.
  std::int64_t UnitsIn(int stage, std::int64_t microbatches) const {
    const std::int64_t window = WindowOf(stage);
    return microbatches < microbatches_ ? microbatches / window
                                        : (microbatches + window - 1) / window;
  }
  /// The microbatches of the round up to the end of a unit.
  std::int64_t UpTo(int stage, std::int64_t unit) const {
    return std::min(microbatches_, (unit + 1) * WindowOf(stage));
  }
  bool RunsBackward(int stage) const {
    return schedule_.runs_backward.empty() || schedule_.runs_backward[At(stage)];
  }

  /// Lets every affected stage decide, and every device begin its next command.
  void DecideAll(std::int64_t now_ns) {
    std::set<int> devices;
    for (const int stage : std::exchange(touched_, {})) {
      devices.insert(devices_[At(stage)].begin(), devices_[At(stage)].end());
      StageCounters& c = counters_[At(stage)];
      const auto pass = NextPass(c, schedule_.rules[At(stage)]);
      if (!pass) continue;
      c.busy = true;
      CountStarted(c, *pass);
      open_[At(stage)] = {devices_[At(stage)].size(), {*pass, -1, -1}};
      for (const int device : devices_[At(stage)]) {
        queues_[At(device)].Push({stage, *pass});
      }
    }
    for (const int device : devices) Begin(device, now_ns);
  }

  void Begin(int device, std::int64_t now_ns) {
    DeviceQueue& queue = queues_[At(device)];
    if (queue.busy || queue.commands.empty()) return;
    const StagePass command = queue.commands.front();
    queue.commands.pop_front();
    queue.busy = true;
    const std::int64_t takes_ns = duration_(command.stage, command.pass);
    if (takes_ns < 0) {
      throw std::invalid_argument("simulation: " + ToString(command.pass) + " of " +
                                  graph_.StageName(command.stage) + " takes " +
                                  std::to_string(takes_ns) + " ns");
    }
    TimedPass& timed = open_[At(command.stage)].timed;
    if (timed.begin_ns < 0) timed.begin_ns = now_ns;
    running_.push({now_ns + takes_ns, command.stage, command.pass, device});
  }

  /// One device has run the pass.
  void FinishShare(const Ending& ending) {
    OpenPass& open = open_[At(ending.stage)];
    queues_[At(ending.device)].busy = false;
    touched_.insert(ending.stage);
    if (--open.devices > 0) return;
    open.timed.end_ns = ending.at_ns;
    result_.stages[At(ending.stage)].push_back(open.timed);
    Finish(ending.stage, ending.pass, ending.at_ns);
  }

  /// The smallest of `counts` over `links`.
  static std::int64_t Least(const std::vector<int>& links,
                            const std::vector<std::int64_t>& counts) {
    const auto count_of = [&](int link) { return counts[At(link)]; };
    return count_of(*std::ranges::min_element(links, {}, count_of));
  }

  /// Gradients of the first `microbatches` have returned over the link.
  void Answer(int link, std::int64_t microbatches) {
    // The queue does not order tensors that arrive at one instant.
    answered_[At(link)] = std::max(answered_[At(link)], microbatches);
    const int before = graph_.links()[At(link)].from;
    StageCounters& c = counters_[At(before)];
    c.gradients = UnitsIn(before, Least(graph_.stages()[At(before)].out, answered_));
    if (!RunsBackward(before)) Retire(before);
    touched_.insert(before);
  }

  void Arrive(int link, std::int64_t microbatches) {
    arrived_[At(link)] = std::max(arrived_[At(link)], microbatches);
    const int next = graph_.links()[At(link)].to;
    counters_[At(next)].activations = UnitsIn(next, Least(graph_.stages()[At(next)].in, arrived_));
    touched_.insert(next);
  }

  /// Sends the tensors up to those microbatches over the link; they arrive now, or after the link's
  /// time.
  void Send(int link, bool answer, std::int64_t microbatches, std::int64_t now_ns) {
    const std::int64_t takes_ns = schedule_.link_ns.empty() ? 0 : schedule_.link_ns[At(link)];
    if (takes_ns > 0) {
      running_.push({now_ns + takes_ns, 0, {}, 0, link, answer, microbatches});
    } else {
      answer ? Answer(link, microbatches) : Arrive(link, microbatches);
    }
  }

  void Retire(int stage) {
    StageCounters& c = counters_[At(stage)];
    c.backwards = c.weights = c.gradients;
  }

  void Finish(int stage, const Pass& pass, std::int64_t now_ns) {
    const StageNode& node = graph_.stages()[At(stage)];
    counters_[At(stage)].busy = false;
    const std::int64_t done = UpTo(stage, pass.unit);
    if (pass.kind == PassKind::kForward) {
      if (node.out.empty()) {
        ++counters_[At(stage)].gradients;
        if (!RunsBackward(stage)) Retire(stage);
      }
      for (const int link : node.out) Send(link, false, done, now_ns);
    }
    for (const int link : node.in) {
      const bool with_forward = !RunsBackward(graph_.links()[At(link)].from);
      const auto answers = with_forward ? PassKind::kForward : PassKind::kBackward;
      if (pass.kind == answers) Send(link, true, done, now_ns);
    }
  }

  void NameBlocked() {
    for (const DeviceQueue& queue : queues_) {
      for (const StagePass& command : queue.held) {
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
  std::int64_t microbatches_;
  std::vector<StageCounters> counters_;
  std::vector<std::int64_t> arrived_;      ///< by link: microbatches whose activations arrived
  std::vector<std::int64_t> answered_;     ///< by link: microbatches whose gradients returned
  std::vector<OpenPass> open_;             ///< by stage: its pass, if it is busy
  std::vector<std::vector<int>> devices_;  ///< by stage
  std::vector<DeviceQueue> queues_;        ///< by device
  std::set<int> touched_;                  ///< stages affected by events since their last decision
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
  if (!schedule.windows.empty()) ExpectEach(schedule.windows.size(), stages, "windows");
  for (const std::vector<int>& devices : schedule.devices) {
    if (devices.empty()) throw std::invalid_argument("simulation: a stage without a device");
    for (const int device : devices) {
      if (device < 0) throw std::invalid_argument("simulation: a device below 0");
    }
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

std::string WhyBlocked(const StageGraph& graph, const Simulation& simulation) {
  if (simulation.blocked.empty()) return "";
  const BlockedStage& first = simulation.blocked.front();
  return graph.StageName(first.stage) + " cannot run " + ToString(first.next) + ", missing " +
         first.lacks;
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
