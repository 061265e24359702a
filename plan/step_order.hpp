// The places of a step's samples with data.order = "balanced": replicas get about the same work, and
// microbatches are in an order in which stages wait little for each other.
//
//   1  The samples are divided among columns: the places of a microbatch that all modules keep
//      together. Every replica of every module gets the same numbers of samples as in any order, and
//      about the same work (schedule/even_groups.hpp).
//   2  The samples of a column make blocks, one for each microbatch: as they are drawn; and, if a block
//      has several, of similar length where rows are padded to the longest of a microbatch, else of
//      about the same work.
//   3  The blocks of columns that share a replica are ordered by a search (schedule/
//      microbatch_order.hpp), and the better of both kinds of blocks is taken. The search simulates
//      1f1b, or gpipe, on a graph in which each replica is a module, so it knows which replicas of an
//      encoder a replica of the language model waits for. Messages take a nanosecond there, and the
//      other schedules are simulated as 1f1b.
//
// A colocated encoder runs before the microbatches of a window: it is balanced over the replicas of the
// language model, and has no part in step 3.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kinds/work.hpp"
#include "plan/job_plan.hpp"
#include "schedule/even_groups.hpp"
#include "schedule/microbatch_order.hpp"

namespace troupe {

/// The times that one sample adds to the passes of each stage, on one replica.
struct SampleTimes {
  std::vector<std::int64_t> forward_ns;   ///< by stage of the job
  std::vector<std::int64_t> backward_ns;  ///< by stage of the job
  SampleTimes& operator+=(const SampleTimes& other);
};

class StepOrder {
 public:
  /// The most passes that the searches of a step simulate together: less than 0.2 s on one core.
  static constexpr std::int64_t kMostPasses = std::int64_t{1} << 22;

  explicit StepOrder(const Config& config);

  /// Returns the times of a sample of that shape: the operations of plan/model_flops.hpp divided by the
  /// ranks of a replica, as if a rank did one in a picosecond. Only their ratios matter.
  SampleTimes TimesOf(const StepShape& sample) const;

  /// Returns which sample is at each place of a round of `microbatches`. Sample k is the one at place k in
  /// the order in which samples are drawn. Throws std::invalid_argument unless there is one for every place.
  std::vector<std::int64_t> Order(const std::vector<SampleTimes>& samples,
                                  std::int64_t microbatches) const;

  /// Returns the load of the fullest replica over the mean load, of the module where that is largest, with
  /// sample order[k] at place k. 1: loads are equal. Colocated encoders do not count.
  double MaxOverMean(const std::vector<SampleTimes>& samples,
                     const std::vector<std::int64_t>& order) const;

  const JobPlan& plan() const { return plan_; }

 private:
  struct Column {
    std::int64_t begin = 0;  ///< first place in a microbatch
    std::int64_t width = 0;
    int component = 0;
  };
  /// One replica of a module.
  struct Replica {
    int module = 0;
    std::vector<int> columns;  ///< ascending
    int component = 0;
  };
  /// The samples of each block of each column.
  using Blocks = std::vector<std::vector<std::vector<std::int64_t>>>;
  /// Columns that share replicas, directly or through others, with these replicas as a graph.
  struct Component {
    std::vector<int> columns;
    std::vector<int> replicas;
    StageGraph graph = StageGraph({}, {});
    std::vector<int> stages;  ///< by stage of the graph: the stage of the job
    Schedule schedule;
  };

  void AddColumns();
  void AddReplicas();
  void AddComponents();
  void AddGraph(Component& component) const;
  int ModuleOfGroups(int module) const;
  SampleColumns ColumnsFor(std::int64_t microbatches) const;
  bool PadsRows(int module) const;
  int FirstPadded() const;  ///< module that pads its rows, -1: none
  /// Returns whether a block has several samples.
  bool HasWideBlocks() const;
  Blocks DrawnBlocks(const std::vector<int>& column_of) const;
  Blocks EvenBlocks(const std::vector<SampleTimes>& samples, const std::vector<int>& column_of,
                    std::int64_t microbatches) const;
  std::vector<StageBlocks> BlockTimes(const std::vector<SampleTimes>& samples, const Blocks& blocks,
                                      const Component& component) const;
  /// Orders the blocks of the component's columns. Returns the makespan of its simulated round.
  std::int64_t OrderBlocks(const std::vector<SampleTimes>& samples, std::int64_t microbatches,
                           const Component& component, std::int64_t evaluations,
                           Blocks& blocks) const;

  JobPlan plan_;
  std::vector<Column> columns_;
  std::vector<Replica> replicas_;  ///< of modules that run microbatch by microbatch
  std::vector<Component> components_;
};

}  // namespace troupe
