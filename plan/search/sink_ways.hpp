// The ways to run the language model: its layouts, microbatches, schedules and recomputation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "plan/search/choices.hpp"
#include "plan/search/module_table.hpp"
#include "plan/search/pipeline.hpp"
#include "plan/search/search_job.hpp"

namespace troupe {

/// A set has the ways that differ in the number of replicas alone. Sets are bounded at first; a way is
/// priced when its set is looked at.
class SinkWays {
 public:
  /// `job` outlives it.
  explicit SinkWays(SearchJob& job);

  /// Returns by set the least time of a step.
  const std::vector<double>& least_s() const { return least_s_; }
  /// Returns the ways of a set that fit. The group of each is its number in PointOf.
  std::vector<SinkOption> Price(std::size_t set);
  const SinkPoint& PointOf(std::size_t group) const { return points_[group]; }
  /// Returns the same way whose encoders run for a step at once, and with the next longer window.
  std::size_t WholeStepOf(std::size_t group) const { return whole_step_[group]; }
  const SinkPoint& LongerOf(std::size_t group) const {
    return points_[std::max(group, whole_step_[group] + 1) - 1];
  }

  /// Returns the memory that the sink leaves on each rank.
  double FreeBytesOf(std::size_t group) const { return free_bytes_[group]; }

  /// The ways of all sets, and those of the sets that were priced.
  std::size_t num_ways() const { return num_ways_; }
  std::size_t num_priced() const { return num_priced_; }

 private:
  /// One division of each layer.
  struct Division {
    Layout layout;
    std::int64_t samples = 1;  ///< of a microbatch, on each replica
    unsigned inlined = 0;
    std::vector<ModuleTable> tables;  ///< by level of recomputation
  };
  struct Set {
    std::size_t division = 0;
    int pp = 1;
    int chunks = 1;
    std::size_t level = 0;
    ScheduleKind kind = ScheduleKind::k1F1B;
    bool offloads = false;
  };

  void AddDivisions();
  bool MayInline(unsigned inlined, int tp) const;
  void AddDivision(const Layout& layout, std::int64_t samples, unsigned inlined);
  void AddSets(std::size_t division);
  void AddSet(const Set& set, ModuleConfig& module, const std::vector<StageSums>& stages);
  const std::vector<StageRun>& RunsOf(const ModuleConfig& module);
  void AddWay(const SinkPoint& point, SinkOption option, std::vector<SinkOption>& ways);
  /// Returns the numbers of replicas that divide the global batch, up to what the devices allow.
  std::span<const std::int64_t> ReplicasOf(const Set& set);

  SearchJob& job_;
  std::vector<Division> divisions_;
  std::vector<Set> sets_;
  std::vector<double> least_s_;
  std::vector<SinkPoint> points_;
  std::vector<std::size_t> whole_step_;  ///< by group
  std::vector<double> free_bytes_;       ///< by group
  std::size_t num_ways_ = 0;
  std::size_t num_priced_ = 0;
  std::map<std::int64_t, std::vector<std::int64_t>> divisors_;       ///< by samples of a replica
  std::map<std::tuple<int, int, int, unsigned>, ModuleTable> like_;  ///< with the same parameters
};

}  // namespace troupe
