// One process of a job, from its first meeting with the others to its exit. When a process is lost
// and the job may go on, those that are left keep their processes: they end their actors and
// connections and meet again, as the next generation of the job, with a process that takes the lost
// one's place, or without one if the job is elastic. The generation goes on from the newest checkpoint.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "app/cluster_run.hpp"
#include "app/interrupt.hpp"
#include "app/work.hpp"
#include "cluster/socket.hpp"
#include "plan/process_plan.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// This process among the others of its job.
struct SelfInJob {
  const ProcessPlan& plan;
  ProcessId self;
  Address seed;                                 ///< where process 0 listens
  std::chrono::steady_clock::time_point began;  ///< when this process was started
};

/// Another process has taken this one's place, or the job goes on without it.
struct PlaceTaken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns a line about the failure of a job in `generation` that goes on after it; nullopt if it
/// does not.
std::optional<std::string> GoingOnLine(const Failure& failure, std::int64_t generation,
                                       const RunSpec& run, const Interrupt& interrupt);

/// After a checkpoint of `run_directory` proved damaged, renames it, prints that, and returns whether
/// there is another to go on from. Returns true after other failures. Throws std::runtime_error if
/// a file cannot be read or renamed.
bool HasSoundCheckpoint(FailureKind kind, const std::string& run_directory);

/// Returns the options by which a process meets the others, but `tls` and what changes with each
/// generation.
JoinOptions MemberOptions(const Work& work, const RunSpec& run, const SelfInJob& job);

/// Joins the others and works with them until the job ends. Returns the exit code; ends the process
/// itself after a failure. Throws PlaceTaken.
int RunGenerations(Work& work, const RunSpec& run, const SelfInJob& job, Interrupt& interrupt);

}  // namespace troupe
