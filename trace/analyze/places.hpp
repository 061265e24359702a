// Finds the places of units in their steps. In a trace units count from the start of the run,
// evaluations included.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trace/run_trace.hpp"
#include "trace/unit_place.hpp"

namespace troupe {

class TraceIndex;

class Places {
 public:
  Places() = default;
  /// All other parts of `index` must be complete.
  explicit Places(const TraceIndex& index);

  UnitPlace Of(const PassRecord& pass) const;
  /// For a unit of an unknown module that works in windows, or does not.
  UnitPlace OfUnit(std::int64_t unit, bool window) const;
  /// The place of the message's unit; unknown if it has none.
  UnitPlace OfMessage(const TraceIndex& index, int message) const;

 private:
  /// The units that a module ran in a round.
  struct Units {
    std::int64_t round = -1;
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t count() const { return last - first + 1; }
  };
  struct Module {
    std::vector<Units> rounds;  ///< by round
    bool windows = false;       ///< it works in windows, since its rows are exchanged
  };

  void CollectUnits(const RunTrace& trace);
  void CollectSteps(const TraceIndex& index);
  /// Any module that works in windows, or does not; -1: none.
  int AnyModule(bool windows) const;
  UnitPlace Find(int module, std::int64_t unit, std::int64_t round) const;
  UnitPlace Beyond(const Module& module, std::int64_t unit) const;
  /// The module whose units the message counts; -1: unknown.
  int ModuleOfMessage(const TraceIndex& index, int message) const;
  int ModuleOfStage(int stage) const;
  std::int64_t StepOf(std::int64_t round) const;

  std::vector<int> module_of_stage_;
  std::vector<Module> modules_;
  std::map<std::int64_t, std::int64_t> steps_;  ///< by round
};

}  // namespace troupe
