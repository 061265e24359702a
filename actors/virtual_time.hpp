// A whole job on one thread and a simulated clock: the same actors, messages that take no time,
// and devices that are busy for a stated time. 520 ranks take seconds, however long their passes
// are.
//
//   a device   computes immediately, and answers when the stated time is over
//   a message  is delivered at the instant it is sent, oldest first
//   a stage    decides when all messages of the instant are handled, as schedule/simulate.hpp does
//   the clock  advances to the next answer when all mailboxes are empty
//
// There is no other source of time or order, so two runs are the same to the nanosecond. Ranks do
// not meet in collectives: rows of exchanges are zeros, and programs must not wait for each other
// and take no real time (modules/synthetic/shape_program.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/job_course.hpp"
#include "actors/work_time.hpp"
#include "plan/job_plan.hpp"
#include "trace/pass_record.hpp"

namespace troupe {

struct VirtualJob {
  std::shared_ptr<const JobPlan> plan;
  ProgramFactory make_program;
  std::shared_ptr<InputSource> source;
  WorkTime takes_ns;
  std::int64_t steps = 1;  ///< training rounds of schedule.microbatches
  int rounds_ahead = 0;    ///< steps that may begin before the current one is complete
  std::shared_ptr<JobObserver> observer;  ///< may be null
  std::vector<PlantedFault> faults;       ///< of tests
};

struct VirtualRun {
  std::string failure;                ///< one line; empty: every step is complete
  std::vector<PassRecord> records;    ///< by begin, then rank; times in ns since the start
  std::vector<std::int64_t> step_ns;  ///< by step: when its last pass ended
  std::uint64_t handled = 0;          ///< messages
  std::size_t actors = 0;

  /// From the start to the end of the last pass.
  std::int64_t makespan_ns() const { return step_ns.empty() ? 0 : step_ns.back(); }
};

/// Runs the job to its end on the calling thread. A job that cannot go on ends with the root of
/// its stall. Throws std::invalid_argument for a stated time below 0.
VirtualRun RunInVirtualTime(const VirtualJob& job);

}  // namespace troupe
