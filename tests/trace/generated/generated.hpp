// A run of a pipeline that never ran: stages with devices, leaders at boundaries, feeds, updates
// and a director, under the real stage rule, with durations that a test states. Deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trace/run_trace.hpp"

namespace troupe::generated {

struct Module {
  std::string name;
  int pp = 1;
  int tp = 1;  ///< devices of each stage replica
  std::int64_t forward_us = 100;
  std::int64_t backward_us = 200;
};

struct Edge {
  int from = 0;
  int to = 0;
  int credits = 4;
};

/// Work that takes longer than others of its kind, or for ever.
struct Slow {
  std::string stage;  ///< "vision.s0"
  int dp = 0;
  WorkKind kind = WorkKind::kForward;
  /// Since the start of the run; of reduce and update: the round; of a checkpoint: the step.
  std::int64_t unit = 0;
  std::int64_t extra_us = 0;
  bool for_ever = false;
};

/// A handler that takes longer: of an actor that only decides.
struct SlowHandler {
  std::string actor;
  std::string type;
  std::int64_t unit = 0;
  std::int64_t extra_us = 0;
};

struct Spec {
  std::vector<Module> modules = {{"vision", 1, 1, 80, 160}, {"language", 2, 2, 100, 200}};
  std::vector<Edge> edges = {{0, 1}};
  int dp = 1;
  int steps = 3;
  int microbatches = 4;
  bool evaluates_first = false;      ///< round 0 runs forwards only
  int first_step = 1;                ///< a run that was resumed begins with another
  int checkpoint_every = 0;          ///< steps between checkpoints; 0: none
  std::int64_t checkpoint_us = 100;  ///< that each device takes to write its shard
  int processes = 1;                 ///< ranks in equal parts
  std::int64_t handling_ns = 1000;
  std::int64_t near_ns = 500;    ///< from actor to actor
  std::int64_t far_ns = 50'000;  ///< to another process
  std::vector<Slow> slow;
  std::vector<SlowHandler> slow_handlers;
  /// The message of this type and unit to this actor is lost, the first of them. Empty: none.
  std::string lost_type;
  std::int64_t lost_unit = 0;
};

RunTrace Generate(const Spec& spec);

/// The forward and the backward of a unit on `rank` change places. Throws std::logic_error where
/// either is not there.
void SwapPasses(RunTrace& trace, int rank, std::int64_t round, std::int64_t unit);

}  // namespace troupe::generated
