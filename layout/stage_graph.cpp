#include "layout/stage_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

std::string EdgeName(const std::vector<ModuleNode>& modules, const ModuleEdge& edge) {
  return "edge " + modules[At(edge.from)].name + " -> " + modules[At(edge.to)].name;
}

void CheckModules(const std::vector<ModuleNode>& modules) {
  for (const ModuleNode& module : modules) {
    if (module.pp < 1) {
      throw LayoutError("module " + module.name + " has pp " + std::to_string(module.pp) +
                        ", expected at least 1");
    }
  }
}

void CheckEdges(const std::vector<ModuleNode>& modules, const std::vector<ModuleEdge>& edges) {
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const ModuleEdge& edge = edges[e];
    for (const int end : {edge.from, edge.to}) {
      if (end >= 0 && At(end) < modules.size()) continue;
      throw LayoutError("edge " + std::to_string(e) + " names module " + std::to_string(end) +
                        ", but there are " + std::to_string(modules.size()) + " modules");
    }
    const std::string name = EdgeName(modules, edge);
    if (edge.from == edge.to) throw LayoutError(name + " leads from a module to itself");
    if (edge.credits < 1) {
      throw LayoutError(name + " has " + std::to_string(edge.credits) +
                        " credits, expected at least 1");
    }
    const auto same = [&](const ModuleEdge& other) {
      return other.from == edge.from && other.to == edge.to;
    };
    if (std::ranges::find_if(edges, same) != edges.begin() + static_cast<std::ptrdiff_t>(e)) {
      throw LayoutError(name + " is given twice");
    }
  }
}

/// The names along a cycle, from its first module in the given order back to it. `waiting` are the
/// modules on cycles or downstream of one. Each has a predecessor among them, so walking upstream
/// must reach a visited module again.
std::string CyclePath(const std::vector<ModuleNode>& modules, const std::vector<ModuleEdge>& edges,
                      const std::vector<bool>& waiting) {
  std::vector<int> walk;
  auto module = static_cast<int>(std::ranges::find(waiting, true) - waiting.begin());
  while (std::ranges::count(walk, module) == 0) {
    walk.push_back(module);
    const auto upstream = std::ranges::find_if(edges, [&](const ModuleEdge& edge) {
      return edge.to == walk.back() && waiting[At(edge.from)];
    });
    module = upstream->from;
  }
  std::vector<int> cycle(std::ranges::find(walk, module), walk.end());
  std::ranges::reverse(cycle);
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
  std::string path;
  for (const int on_cycle : cycle) path += modules[At(on_cycle)].name + " -> ";
  return path + modules[At(cycle.front())].name;
}

/// Sorts the modules so that every edge points forward. Among candidates the first given goes
/// first.
std::vector<int> OrderModules(const std::vector<ModuleNode>& modules,
                              const std::vector<ModuleEdge>& edges) {
  std::vector<bool> waiting(modules.size(), true);
  const auto is_ready = [&](int module) {
    return waiting[At(module)] && std::ranges::none_of(edges, [&](const ModuleEdge& edge) {
             return edge.to == module && waiting[At(edge.from)];
           });
  };
  std::vector<int> all(modules.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> order;
  while (order.size() < modules.size()) {
    const auto next = std::ranges::find_if(all, is_ready);
    if (next == all.end()) {
      throw LayoutError("edges form a cycle: " + CyclePath(modules, edges, waiting));
    }
    order.push_back(*next);
    waiting[At(*next)] = false;
  }
  return order;
}

}  // namespace

StageGraph::StageGraph(std::vector<ModuleNode> modules, std::vector<ModuleEdge> edges)
    : modules_(std::move(modules)), edges_(std::move(edges)) {
  CheckModules(modules_);
  CheckEdges(modules_, edges_);
  const std::vector<int> module_order = OrderModules(modules_, edges_);
  MakeStages();
  MakeLinks();
  for (const int module : module_order) {
    for (int pp = 0; pp < modules_[At(module)].pp; ++pp) {
      order_.push_back(StageIndex(module, pp));
    }
  }
  MeasureDistances();
}

void StageGraph::MakeStages() {
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    first_stages_.push_back(static_cast<int>(stages_.size()));
    for (int pp = 0; pp < modules_[m].pp; ++pp) {
      stages_.push_back({.module = static_cast<int>(m), .pp = pp, .in = {}, .out = {}});
    }
  }
}

void StageGraph::MakeLinks() {
  const auto connect = [this](int from, int to, int edge) {
    const auto link = static_cast<int>(links_.size());
    links_.push_back({.from = from, .to = to, .edge = edge});
    stages_[At(from)].out.push_back(link);
    stages_[At(to)].in.push_back(link);
  };
  for (std::size_t s = 0; s + 1 < stages_.size(); ++s) {
    const auto stage = static_cast<int>(s);
    if (stages_[s].module == stages_[s + 1].module) connect(stage, stage + 1, -1);
  }
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    connect(StageIndex(edges_[e].from, modules_[At(edges_[e].from)].pp - 1),
            StageIndex(edges_[e].to, 0), static_cast<int>(e));
  }
}

void StageGraph::MeasureDistances() {
  sink_distances_.assign(stages_.size(), 0);
  limits_.assign(stages_.size(), 1);
  for (auto stage = order_.rbegin(); stage != order_.rend(); ++stage) {
    int& distance = sink_distances_[At(*stage)];
    int& limit = limits_[At(*stage)];
    // All successors first, credits after: the tightest edge holds even if it leads to a short
    // branch, because a forward sends to all successors.
    for (const int out : stages_[At(*stage)].out) {
      distance = std::max(distance, 1 + sink_distances_[At(links_[At(out)].to)]);
      limit = std::max(limit, 1 + limits_[At(links_[At(out)].to)]);
    }
    for (const int out : stages_[At(*stage)].out) {
      const int edge = links_[At(out)].edge;
      if (edge >= 0) limit = std::min(limit, edges_[At(edge)].credits);
    }
  }
}

int StageGraph::StageIndex(int module, int pp) const {
  if (module < 0 || At(module) >= modules_.size()) {
    throw LayoutError("module " + std::to_string(module) + " does not exist, there are " +
                      std::to_string(modules_.size()));
  }
  if (pp < 0 || pp >= modules_[At(module)].pp) {
    throw LayoutError("stage " + std::to_string(pp) + " of " + modules_[At(module)].name +
                      " does not exist, its pp is " + std::to_string(modules_[At(module)].pp));
  }
  return first_stages_[At(module)] + pp;
}

StageId StageGraph::IdOf(int stage) const {
  if (stage < 0 || At(stage) >= stages_.size()) {
    throw LayoutError("stage " + std::to_string(stage) + " does not exist, there are " +
                      std::to_string(stages_.size()));
  }
  const StageNode& node = stages_[At(stage)];
  return {modules_[At(node.module)].name, node.pp};
}

}  // namespace troupe
