// Sets the rule of every stage of a job.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "layout/text.hpp"
#include "plan/job_plan.hpp"
#include "schedule/action_table.hpp"
#include "schedule/simulate.hpp"

namespace troupe {
namespace {

/// Returns whether the pass does not run: it is of a stage without a backward, which uses 1f1b, or
/// the weight pass of a stage without trainable weights.
bool IsLeftOut(const StagePass& at, const std::vector<StagePlan>& stages) {
  const StagePlan& stage = stages[At(at.stage)];
  return !stage.runs_backward || (at.pass.kind == PassKind::kWeight && !stage.trains);
}

/// Describes the blocked stages that have an order. The others only wait for them.
std::string ScheduleText(const StageGraph& graph, const Schedule& schedule,
                         const std::vector<BlockedStage>& blocked) {
  std::string text;
  for (const BlockedStage& stage : blocked) {
    const StageRule& rule = schedule.rules[At(stage.stage)];
    if (rule.kind != RuleKind::kOrdered) continue;
    text += (text.empty() ? "" : "; ") + graph.StageName(stage.stage) + " cannot run " +
            ToString(stage.next) + ", missing " + stage.lacks;
  }
  return text;
}

/// Throws if the file names stages of modules other than `sink`.
void RefuseOtherModules(const ScheduleConfig& schedule, const std::string& sink) {
  std::vector<std::string> others = ParseActionTable(schedule.file_text).NamedModules();
  std::erase(others, sink);
  if (others.empty()) return;
  throw LayoutError(
      schedule.file + ": expected rows of " + sink +
      " only, which feeds no other module, got rows of " + Listed(others) +
      ", too: those follow 1f1b whatever a file says; leave their rows out and number "
      "the stages of " +
      sink + " from 0");
}

}  // namespace

std::vector<DeviceOrder> JobPlan::OrdersOfSink(int sink) const {
  const ScheduleConfig& schedule = config_.schedule;
  const ModuleConfig& module = *modules_[At(sink)].config;
  std::vector<DeviceOrder> orders;
  if (schedule.kind == ScheduleKind::kInterleaved) {
    if (schedule.microbatches % module.layout.pp != 0) {
      throw LayoutError(
          "schedule: interleaved expects a multiple of pp = " + std::to_string(module.layout.pp) +
          " microbatches, got " + std::to_string(schedule.microbatches));
    }
    orders = InterleavedOrders(module.layout.pp, module.chunks, schedule.microbatches);
  } else {
    try {
      RefuseOtherModules(schedule, module.name);
      orders = ParseCsvOrders(schedule.file_text);
    } catch (const std::invalid_argument& error) {
      throw LayoutError(schedule.file + ": " + error.what());
    }
    if (static_cast<int>(orders.size()) != module.layout.pp) {
      throw LayoutError(schedule.file + ": expected a row for each of the " +
                        std::to_string(module.layout.pp) + " pipeline ranks of " + module.name +
                        ", got " + std::to_string(orders.size()));
    }
    const std::string why = WhyNoOrders(orders, module.num_stages(), schedule.microbatches);
    if (!why.empty()) throw LayoutError(schedule.file + ": " + why);
  }
  const int first = graph_.StageIndex(sink, 0);
  for (DeviceOrder& order : orders) {
    for (StagePass& at : order) at.stage += first;
    std::erase_if(order, [this](const StagePass& at) { return IsLeftOut(at, stages_); });
  }
  return orders;
}

/// By stage.
std::vector<JobPlan::Room> JobPlan::RoomBefore() const {
  const ScheduleConfig& schedule = config_.schedule;
  std::vector<Room> room(stages_.size(), {std::numeric_limits<std::int64_t>::max()});
  for (const int stage : graph_.TopologicalOrder()) {
    Room& mine = room[At(stage)];
    for (const int in : graph_.stages()[At(stage)].in) {
      const std::size_t before = At(graph_.links()[At(in)].from);
      mine.microbatches = std::min(mine.microbatches, room[before].microbatches);
      mine.windows = mine.windows || room[before].windows;
      const ModulePlan& module = modules_[At(stages_[before].module)];
      if (!module.colocated_encoder) {  // the limit already includes the credits of its edges
        if (!stages_[before].runs_backward) continue;
        mine.microbatches = std::min(mine.microbatches, stages_[before].limit);
      } else if (module.units.In(schedule.microbatches).count > 1) {
        mine.windows = true;
      }
    }
  }
  return room;
}

void JobPlan::AddSchedule() {
  const ScheduleKind kind = config_.schedule.kind;
  const bool ordered = kind == ScheduleKind::kInterleaved || kind == ScheduleKind::kCsv;
  const std::vector<Room> rooms = RoomBefore();
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    std::vector<std::int64_t> limits;
    for (const StagePlan& stage : stages_) {
      if (stage.module == static_cast<int>(m)) limits.push_back(stage.limit);
    }
    const auto zb_h1 = ZbH1Rules(limits);
    for (StagePlan& stage : stages_) {
      if (stage.module != static_cast<int>(m)) continue;
      stage.rule = {.limit = stage.limit};
      if (!stage.runs_backward || modules_[m].colocated_encoder) continue;
      if (kind == ScheduleKind::kGpipe) stage.rule.kind = RuleKind::kGpipe;
      if (kind == ScheduleKind::kZbH1 && stage.trains) stage.rule = zb_h1[At(stage.pp)];
      const Room& room = rooms[At(stage.stage)];
      stage.rule.forwards_may_lack_room = room.windows || room.microbatches < stage.rule.limit;
      if (LockStepReplicas(stage.stage, 0).size() > 1) Fix(stage.rule, room);
    }
  }
  int device = 0;
  std::vector<int> first_devices;
  for (const ModulePlan& module : modules_) {
    first_devices.push_back(device);
    device += module.grid.layout().pp;
  }
  for (const StagePlan& stage : stages_) {
    schedule_.devices.push_back(DevicesOf(stage, first_devices));
    schedule_.runs_backward.push_back(stage.runs_backward);
    schedule_.windows.push_back(modules_[At(stage.module)].units.window());
  }
  if (ordered) OrderSink(first_devices);
  for (const StagePlan& stage : stages_) schedule_.rules.push_back(stage.rule);
  CountKept();
}

/// Makes the order of a rule independent of arrivals.
void JobPlan::Fix(StageRule& rule, const Room& room) const {
  rule.fixed = true;
  rule.forwards_may_lack_room = false;
  rule.limit = std::min(rule.limit, room.microbatches);
  if (room.windows) rule.window = config_.schedule.window;
}

/// Returns the devices of a stage in the schedule: one, or those of the stages with whose ranks a
/// colocated encoder runs.
std::vector<int> JobPlan::DevicesOf(const StagePlan& stage,
                                    const std::vector<int>& first_devices) const {
  const std::vector<int> ranks = AllRanksOf(stage);
  std::vector<int> devices;
  for (const EdgePlan& edge : edges_) {
    if (edge.from != stage.module || edge.placement != Placement::kColocated) continue;
    const Grid& host = ModuleOf(edge.to).grid;
    for (int pp = 0; pp < host.layout().pp; ++pp) {
      const bool shared = std::ranges::any_of(host.RanksAt(pp), [&](int rank) {
        return std::ranges::find(ranks, rank) != ranks.end();
      });
      if (shared) devices.push_back(first_devices[At(edge.to)] + pp);
    }
  }
  const int own_pp = ModuleOf(stage.module).grid.layout().pp;
  if (devices.empty()) devices = {first_devices[At(stage.module)] + stage.pp % own_pp};
  return devices;
}

/// Sets the orders of the sink's stages and of their devices.
void JobPlan::OrderSink(const std::vector<int>& first_devices) {
  const std::string& name = config_.Sink().name;
  const auto sink = std::ranges::find_if(
      modules_, [&](const ModulePlan& module) { return module.config->name == name; });
  const auto index = static_cast<std::size_t>(sink - modules_.begin());
  const auto orders = OrdersOfSink(static_cast<int>(index));
  for (std::size_t pp = 0; pp < orders.size(); ++pp) {
    const auto device = static_cast<std::size_t>(first_devices[index]) + pp;
    if (schedule_.orders.size() <= device) schedule_.orders.resize(device + 1);
    schedule_.orders[device] = orders[pp];
    for (StagePlan& stage : stages_) {
      if (!stage.runs_backward || stage.module != static_cast<int>(index) ||
          schedule_.devices[At(stage.stage)].front() != static_cast<int>(device)) {
        continue;
      }
      const std::int64_t limit = stage.rule.limit;
      stage.rule = OrderedRule(orders[pp], stage.stage);
      stage.rule.limit = limit;
    }
  }
}

/// Plays a round and counts the units that every stage keeps. Throws if the orders deadlock.
void JobPlan::CountKept() {
  const std::int64_t microbatches = config_.schedule.microbatches;
  equal_passes_ = Simulate(graph_, schedule_, EqualDurations(2, 2, 2), microbatches);
  if (!schedule_.orders.empty() && !equal_passes_.blocked.empty()) {
    const ScheduleConfig& schedule = config_.schedule;
    throw LayoutError((schedule.kind == ScheduleKind::kCsv
                           ? schedule.file
                           : "schedule " + ToString(schedule.kind)) +
                      ": deadlock: " + ScheduleText(graph_, schedule_, equal_passes_.blocked));
  }
  for (StagePlan& stage : stages_) {
    stage.kept = stage.runs_backward ? PeakInFlight(equal_passes_, stage.stage)
                                     : std::min(stage.rule.limit, microbatches);
  }
}

const DeviceOrder* JobPlan::OrderOn(int rank) const {
  for (const auto& [stage, shard] : ShardsOn(rank)) {
    // A colocated encoder shares the rank and has no part in its order.
    if (modules_[At(stages_[At(stage)].module)].colocated_encoder) continue;
    const std::size_t device = At(schedule_.devices[At(stage)].front());
    if (device < schedule_.orders.size() && !schedule_.orders[device].empty()) {
      return &schedule_.orders[device];
    }
  }
  return nullptr;
}

}  // namespace troupe
