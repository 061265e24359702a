// The pipeline stages of all modules as one graph of dependencies.
#pragma once

#include <string>
#include <vector>

#include "layout/at.hpp"
#include "layout/grid.hpp"
#include "layout/ids.hpp"

namespace troupe {

/// A module as the stage graph sees it. Inline modules are not in the graph.
struct ModuleNode {
  std::string name;
  int pp = 1;
};

/// An edge between modules, by module index. `credits` bounds the microbatches in flight.
struct ModuleEdge {
  int from = 0;
  int to = 0;
  int credits = 4;
};

/// One pipeline stage of one module.
struct StageNode {
  int module = 0;
  int pp = 0;
  std::vector<int> in;   ///< indexes of incoming StageLinks, boundary edges in module-edge order
  std::vector<int> out;  ///< indexes of outgoing StageLinks
};

/// A connection of two stages: inside a module, or a boundary (edge >= 0).
struct StageLink {
  int from = 0;   ///< stage index
  int to = 0;     ///< stage index
  int edge = -1;  ///< index of the ModuleEdge, -1 inside a module
};

class StageGraph {
 public:
  /// Throws LayoutError: a cycle (named `a -> b -> a`), an edge to itself, a duplicate edge, an
  /// unknown module index, credits or pp below 1.
  StageGraph(std::vector<ModuleNode> modules, std::vector<ModuleEdge> edges);

  const std::vector<ModuleNode>& modules() const { return modules_; }
  const std::vector<ModuleEdge>& edges() const { return edges_; }
  const std::vector<StageNode>& stages() const { return stages_; }
  const std::vector<StageLink>& links() const { return links_; }

  /// Stages are numbered module by module, pp ascending. Throws LayoutError when out of range.
  int StageIndex(int module, int pp) const;
  /// Throws LayoutError for an unknown stage.
  StageId IdOf(int stage) const;
  /// "vision.s0". Throws as IdOf does.
  std::string StageName(int stage) const { return ToString(IdOf(stage)); }
  bool IsSource(int stage) const { return stages_[At(stage)].in.empty(); }

  /// Stages on the longest path from `stage` to a sink, excluding itself: 0 at a sink. The warm-up
  /// depends on the distance to the sink, not from a source: a short branch must not warm up like a
  /// long one.
  int SinkDistance(int stage) const { return sink_distances_[At(stage)]; }

  /// Forwards that may await their backward at `stage`: SinkDistance + 1, or fewer if the credits
  /// of a boundary on the way are fewer. 1 at a sink; otherwise one more than the largest limit of
  /// a successor, but at most the credits of any boundary edge that leaves this stage.
  int InFlightLimit(int stage) const { return limits_[At(stage)]; }

  /// Stages in an order in which every link points forward. Modules without a fixed order keep the
  /// given one.
  const std::vector<int>& TopologicalOrder() const { return order_; }

 private:
  void MakeStages();
  void MakeLinks();
  void MeasureDistances();

  std::vector<ModuleNode> modules_;
  std::vector<ModuleEdge> edges_;
  std::vector<StageNode> stages_;
  std::vector<int> first_stages_;  ///< by module: the index of its stage at pp = 0
  std::vector<StageLink> links_;
  std::vector<int> order_;
  std::vector<int> sink_distances_;
  std::vector<int> limits_;
};

}  // namespace troupe
