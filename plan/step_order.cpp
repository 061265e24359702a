#include "plan/step_order.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "layout/at.hpp"
#include "plan/model_flops.hpp"

namespace troupe {
namespace {

/// Messages arrive after the decisions of their instant, as in a run (schedule/round_evaluator.hpp).
constexpr std::int64_t kMessageNs = 1;

std::int64_t TotalOf(const SampleTimes& times, int stage) {
  return times.forward_ns[At(stage)] + times.backward_ns[At(stage)];
}

std::int64_t TotalOf(const SampleTimes& times) {
  std::int64_t total = 0;
  for (int stage = 0; At(stage) < times.forward_ns.size(); ++stage) total += TotalOf(times, stage);
  return total;
}

/// Returns the time of each module for each sample.
std::vector<std::vector<std::int64_t>> CostsOf(const JobPlan& plan,
                                               const std::vector<SampleTimes>& samples) {
  std::vector<std::vector<std::int64_t>> costs;
  for (const SampleTimes& sample : samples) {
    auto& by_module = costs.emplace_back(plan.modules().size());
    for (const StagePlan& stage : plan.stages()) {
      by_module[At(stage.module)] += TotalOf(sample, stage.stage);
    }
  }
  return costs;
}

template <class T>
std::vector<T> Picked(const std::vector<T>& all, const std::vector<std::int64_t>& numbers) {
  std::vector<T> picked;
  for (const std::int64_t number : numbers) picked.push_back(all[static_cast<std::size_t>(number)]);
  return picked;
}

/// Returns blocks of `width` neighbours.
std::vector<std::vector<std::int64_t>> CutEvery(const std::vector<std::int64_t>& samples,
                                                std::int64_t width) {
  std::vector<std::vector<std::int64_t>> blocks;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (static_cast<std::int64_t>(i) % width == 0) blocks.emplace_back();
    blocks.back().push_back(samples[i]);
  }
  return blocks;
}

/// Returns the samples of a column in the order in which they are drawn.
std::vector<std::int64_t> HeldBy(int column, const std::vector<int>& column_of) {
  std::vector<std::int64_t> held;
  for (std::size_t sample = 0; sample < column_of.size(); ++sample) {
    if (column_of[sample] == column) held.push_back(static_cast<std::int64_t>(sample));
  }
  return held;
}

bool Shares(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&](int each) { return std::ranges::count(b, each) > 0; });
}

Arrangement Reordered(const Arrangement& arrangement, const std::vector<int>& order) {
  Arrangement reordered = arrangement;
  for (std::size_t column = 0; column < arrangement.size(); ++column) {
    for (std::size_t place = 0; place < order.size(); ++place) {
      reordered[column][place] = arrangement[column][At(order[place])];
    }
  }
  return reordered;
}

}  // namespace

SampleTimes& SampleTimes::operator+=(const SampleTimes& other) {
  forward_ns.resize(other.forward_ns.size());
  backward_ns.resize(other.backward_ns.size());
  for (std::size_t stage = 0; stage < forward_ns.size(); ++stage) {
    forward_ns[stage] += other.forward_ns[stage];
    backward_ns[stage] += other.backward_ns[stage];
  }
  return *this;
}

StepOrder::StepOrder(const Config& config) : plan_(config) {
  AddColumns();
  AddReplicas();
  AddComponents();
}

void StepOrder::AddColumns() {
  const std::int64_t samples = plan_.samples_per_microbatch();
  std::set<std::int64_t> cuts = {0, samples};
  for (const ModulePlan& module : plan_.modules()) {
    if (module.colocated_encoder) continue;
    const int dp = module.grid.layout().dp;
    for (int replica = 0; replica < dp; ++replica) cuts.insert(PartOf(samples, dp, replica).begin);
  }
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    columns_.push_back({*cut, *std::next(cut) - *cut, static_cast<int>(columns_.size())});
  }
}

void StepOrder::AddReplicas() {
  for (int module = 0; At(module) < plan_.modules().size(); ++module) {
    if (plan_.ModuleOf(module).colocated_encoder) continue;
    const int dp = plan_.ModuleOf(module).grid.layout().dp;
    for (int number = 0; number < dp; ++number) {
      const Interval part = PartOf(plan_.samples_per_microbatch(), dp, number);
      Replica replica{module, {}, 0};
      for (int column = 0; At(column) < columns_.size(); ++column) {
        if (part.Contains(columns_[At(column)].begin)) replica.columns.push_back(column);
      }
      if (replica.columns.empty()) continue;  // fewer samples than replicas
      // Columns of one replica belong together, and so do all that are with one of them already.
      const int joined = columns_[At(replica.columns.front())].component;
      for (const int other : replica.columns) {
        const int before = columns_[At(other)].component;
        for (Column& column : columns_) {
          if (column.component == before) column.component = joined;
        }
      }
      replicas_.push_back(std::move(replica));
    }
  }
}

void StepOrder::AddComponents() {
  for (int number = 0; At(number) < columns_.size(); ++number) {
    Component component;
    for (int column = 0; At(column) < columns_.size(); ++column) {
      if (columns_[At(column)].component == number) component.columns.push_back(column);
    }
    if (component.columns.empty()) continue;
    for (int replica = 0; At(replica) < replicas_.size(); ++replica) {
      if (!Shares(replicas_[At(replica)].columns, component.columns)) continue;
      component.replicas.push_back(replica);
    }
    AddGraph(component);
    components_.push_back(std::move(component));
  }
}

void StepOrder::AddGraph(Component& component) const {
  std::vector<ModuleNode> nodes;
  std::vector<ModuleEdge> edges;
  for (const int number : component.replicas) {
    const Replica& replica = replicas_[At(number)];
    const ModuleConfig& module = *plan_.ModuleOf(replica.module).config;
    nodes.push_back({module.name + " " + std::to_string(number), module.num_stages()});
    for (int pp = 0; pp < module.num_stages(); ++pp) {
      const int stage = plan_.graph().StageIndex(replica.module, pp);
      component.stages.push_back(stage);
      const StagePlan& planned = plan_.stages()[At(stage)];
      const bool simulated =
          planned.rule.kind == RuleKind::k1F1B || planned.rule.kind == RuleKind::kGpipe;
      component.schedule.rules.push_back(simulated ? planned.rule
                                                   : StageRule{.limit = planned.limit});
      component.schedule.runs_backward.push_back(planned.runs_backward);
    }
  }
  for (const ModuleEdge& edge : plan_.graph().edges()) {
    for (int from = 0; At(from) < component.replicas.size(); ++from) {
      for (int to = 0; At(to) < component.replicas.size(); ++to) {
        const Replica& source = replicas_[At(component.replicas[At(from)])];
        const Replica& destination = replicas_[At(component.replicas[At(to)])];
        if (source.module != edge.from || destination.module != edge.to) continue;
        if (Shares(source.columns, destination.columns)) edges.push_back({from, to, edge.credits});
      }
    }
  }
  component.graph = StageGraph(std::move(nodes), std::move(edges));
  component.schedule.link_ns.assign(component.graph.links().size(), kMessageNs);
}

SampleTimes StepOrder::TimesOf(const StepShape& sample) const {
  constexpr double kOperationsPerNs = 1e3;
  SampleTimes times;
  for (const StagePlan& stage : plan_.stages()) {
    const ModuleConfig& module = *plan_.ModuleOf(stage.module).config;
    const PassFlops flops = StageFlops(plan_.config(), module.name, stage.pp, sample);
    const std::int64_t ranks = std::int64_t{module.layout.tp} * module.layout.cp;
    times.forward_ns.push_back(static_cast<std::int64_t>(flops.forward / kOperationsPerNs) / ranks);
    times.backward_ns.push_back(static_cast<std::int64_t>(flops.backward / kOperationsPerNs) /
                                ranks);
  }
  return times;
}

/// Returns the module whose replicas a module is balanced over: its own, or those that it shares ranks with.
int StepOrder::ModuleOfGroups(int module) const {
  for (const EdgePlan& edge : plan_.edges()) {
    if (edge.from == module && edge.placement == Placement::kColocated) return edge.to;
  }
  return module;
}

SampleColumns StepOrder::ColumnsFor(std::int64_t microbatches) const {
  SampleColumns columns;
  for (const Column& column : columns_) columns.room.push_back(column.width * microbatches);
  for (int module = 0; At(module) < plan_.modules().size(); ++module) {
    auto& groups = columns.group_of.emplace_back(columns_.size());
    int group = 0;
    for (const Replica& replica : replicas_) {
      if (replica.module != ModuleOfGroups(module)) continue;
      for (const int column : replica.columns) groups[At(column)] = group;
      ++group;
    }
  }
  return columns;
}

bool StepOrder::PadsRows(int module) const {
  return troupe::PadsRows(plan_.config(), *plan_.ModuleOf(module).config);
}

int StepOrder::FirstPadded() const {
  for (int module = 0; At(module) < plan_.modules().size(); ++module) {
    if (PadsRows(module)) return module;
  }
  return -1;
}

bool StepOrder::HasWideBlocks() const {
  return std::ranges::any_of(columns_, [](const Column& column) { return column.width > 1; });
}

StepOrder::Blocks StepOrder::DrawnBlocks(const std::vector<int>& column_of) const {
  Blocks blocks;
  for (int column = 0; At(column) < columns_.size(); ++column) {
    blocks.push_back(CutEvery(HeldBy(column, column_of), columns_[At(column)].width));
  }
  return blocks;
}

StepOrder::Blocks StepOrder::EvenBlocks(const std::vector<SampleTimes>& samples,
                                        const std::vector<int>& column_of,
                                        std::int64_t microbatches) const {
  const auto costs = CostsOf(plan_, samples);
  const int padded = FirstPadded();
  const auto count = static_cast<std::size_t>(microbatches);
  std::vector<int> each(count);
  std::iota(each.begin(), each.end(), 0);
  Blocks blocks;
  for (int column = 0; At(column) < columns_.size(); ++column) {
    std::vector<std::int64_t> held = HeldBy(column, column_of);
    const std::int64_t width = columns_[At(column)].width;
    if (padded >= 0) {
      std::ranges::stable_sort(held, std::ranges::greater(), [&](std::int64_t sample) {
        return costs[static_cast<std::size_t>(sample)][At(padded)];
      });
      blocks.push_back(CutEvery(held, width));
      continue;
    }
    const SampleColumns even{std::vector(count, width), std::vector(plan_.modules().size(), each)};
    const std::vector<int> block_of = DivideEvenly(Picked(costs, held), even);
    auto& of_column = blocks.emplace_back(count);
    for (std::size_t i = 0; i < held.size(); ++i) of_column[At(block_of[i])].push_back(held[i]);
  }
  return blocks;
}

std::vector<StageBlocks> StepOrder::BlockTimes(const std::vector<SampleTimes>& samples,
                                               const Blocks& blocks,
                                               const Component& component) const {
  std::vector<StageBlocks> stages;
  const auto add = [&](const Replica& replica, int stage) {
    StageBlocks& times = stages.emplace_back();
    times.padded = PadsRows(replica.module);
    std::int64_t width = 0;
    for (const int column : replica.columns) width += columns_[At(column)].width;
    const auto time_of = [&](const std::vector<std::int64_t>& block,
                             std::vector<std::int64_t> SampleTimes::*of_pass) {
      std::int64_t ns = 0;
      for (const SampleTimes& sample : Picked(samples, block)) {
        const std::int64_t own = (sample.*of_pass)[At(stage)];
        ns = times.padded ? std::max(ns, own * width) : ns + own;
      }
      return ns;
    };
    for (const int column : replica.columns) {
      const auto local = std::ranges::find(component.columns, column) - component.columns.begin();
      times.columns.push_back(static_cast<int>(local));
      auto& forward = times.forward_ns.emplace_back();
      auto& backward = times.backward_ns.emplace_back();
      for (const auto& block : blocks[At(column)]) {
        forward.push_back(time_of(block, &SampleTimes::forward_ns));
        backward.push_back(time_of(block, &SampleTimes::backward_ns));
      }
    }
  };
  std::size_t next = 0;
  for (const int replica : component.replicas) {
    const ModulePlan& module = plan_.ModuleOf(replicas_[At(replica)].module);
    for (int pp = 0; pp < module.config->num_stages(); ++pp) {
      add(replicas_[At(replica)], component.stages[next++]);
    }
  }
  return stages;
}

std::int64_t StepOrder::OrderBlocks(const std::vector<SampleTimes>& samples,
                                    std::int64_t microbatches, const Component& component,
                                    std::int64_t evaluations, Blocks& blocks) const {
  const auto count = static_cast<std::size_t>(microbatches);
  RoundEvaluator evaluator(component.graph, component.schedule, microbatches);
  const std::vector<StageBlocks> stages = BlockTimes(samples, blocks, component);
  // As the blocks were made; and with the largest of all columns in one microbatch, which saves time if
  // replicas wait for each other.
  Arrangement made;
  Arrangement by_size;
  for (const int column : component.columns) {
    std::vector<std::int64_t> sizes;
    for (const auto& block : blocks[At(column)]) {
      std::int64_t size = 0;
      for (const SampleTimes& sample : Picked(samples, block)) size += TotalOf(sample);
      sizes.push_back(size);
    }
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    made.push_back(order);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](int block) { return sizes[At(block)]; });
    by_size.push_back(std::move(order));
  }
  std::vector<Arrangement> starts = {made};
  for (const Arrangement& base : {made, by_size}) {
    const PassTimes times = FoldedTimes(component.graph, troupe::TimesOf(stages, base));
    starts.push_back(Reordered(base, OrderByIntervals(times)));
  }
  evaluations = std::min(evaluations, kMostPasses / static_cast<std::int64_t>(components_.size()) /
                                          std::max<std::int64_t>(evaluator.num_passes(), 1));
  const Arrangement found = SearchOrder(evaluator, stages, starts, evaluations);
  for (std::size_t i = 0; i < component.columns.size(); ++i) {
    auto& own = blocks[At(component.columns[i])];
    std::vector<std::vector<std::int64_t>> ordered;
    for (const int block : found[i]) ordered.push_back(own[At(block)]);
    own = std::move(ordered);
  }
  return evaluator.Makespan(troupe::TimesOf(stages, found));
}

std::vector<std::int64_t> StepOrder::Order(const std::vector<SampleTimes>& samples,
                                           std::int64_t microbatches) const {
  const std::int64_t each = plan_.samples_per_microbatch();
  if (microbatches < 0 || std::ssize(samples) != each * microbatches) {
    throw std::invalid_argument("step order: expected " + std::to_string(each) + " samples of " +
                                std::to_string(microbatches) + " microbatches, got " +
                                std::to_string(samples.size()));
  }
  const std::vector<int> column_of =
      DivideEvenly(CostsOf(plan_, samples), ColumnsFor(microbatches));
  Blocks blocks = DrawnBlocks(column_of);
  Blocks even = HasWideBlocks() ? EvenBlocks(samples, column_of, microbatches) : Blocks();
  const std::int64_t evaluations = even.empty() ? kSearchEvaluations : kSearchEvaluations / 2;
  for (const Component& component : components_) {
    const auto ns = OrderBlocks(samples, microbatches, component, evaluations, blocks);
    if (even.empty()) continue;
    if (OrderBlocks(samples, microbatches, component, evaluations, even) >= ns) continue;
    for (const int column : component.columns) std::swap(blocks[At(column)], even[At(column)]);
  }
  std::vector<std::int64_t> order(samples.size());
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    for (std::size_t m = 0; m < blocks[column].size(); ++m) {
      const std::int64_t first = static_cast<std::int64_t>(m) * each + columns_[column].begin;
      std::ranges::copy(blocks[column][m], order.begin() + first);
    }
  }
  return order;
}

double StepOrder::MaxOverMean(const std::vector<SampleTimes>& samples,
                              const std::vector<std::int64_t>& order) const {
  const std::vector<std::vector<std::int64_t>> costs = CostsOf(plan_, samples);
  const std::int64_t each = plan_.samples_per_microbatch();
  double worst = 1.0;
  for (int module = 0; At(module) < plan_.modules().size(); ++module) {
    const int dp = plan_.ModuleOf(module).grid.layout().dp;
    if (plan_.ModuleOf(module).colocated_encoder) continue;
    double most = 0;
    double sum = 0;
    for (int replica = 0; replica < dp; ++replica) {
      const Interval part = PartOf(each, dp, replica);
      double load = 0;
      for (std::size_t place = 0; place < order.size(); ++place) {
        if (!part.Contains(static_cast<std::int64_t>(place) % each)) continue;
        load += static_cast<double>(costs[static_cast<std::size_t>(order[place])][At(module)]);
      }
      most = std::max(most, load);
      sum += load;
    }
    if (sum > 0) worst = std::max(worst, most * dp / sum);
  }
  return worst;
}

}  // namespace troupe
