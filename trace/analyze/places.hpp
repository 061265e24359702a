// Where the units of a trace are in their steps. In a trace they count from the start of the run,
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
  /// Everything else of `index` must be ready.
  explicit Places(const TraceIndex& index);

  UnitPlace Of(const PassRecord& pass) const;
  /// Of a unit of whose module no more is known than whether it works in windows.
  UnitPlace OfUnit(std::int64_t unit, bool window) const;
  /// Of the unit that the message is about, if it is about one.
  UnitPlace OfMessage(const TraceIndex& index, int message) const;

 private:
  /// What a module ran in a round.
  struct Units {
    std::int64_t round = -1;
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t count() const { return last - first + 1; }
  };
  struct Module {
    std::vector<Units> rounds;  ///< by round
    bool windows = false;       ///< its rows are exchanged: it works in windows
  };

  void CollectUnits(const RunTrace& trace);
  void CollectSteps(const TraceIndex& index);
  /// A module that works in windows, or one that does not; -1: there is none.
  int AnyModule(bool windows) const;
  UnitPlace Find(int module, std::int64_t unit, std::int64_t round) const;
  UnitPlace Beyond(const Module& module, std::int64_t unit) const;
  /// Whose units the message counts; -1: it is not known.
  int ModuleOfMessage(const TraceIndex& index, int message) const;
  int ModuleOfStage(int stage) const;
  std::int64_t StepOf(std::int64_t round) const;

  std::vector<int> module_of_stage_;
  std::vector<Module> modules_;
  std::map<std::int64_t, std::int64_t> steps_;  ///< by round
};

}  // namespace troupe
