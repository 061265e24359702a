// Builds a job from a configuration and runs it: alone, or as one process of several.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/director_actor.hpp"
#include "actors/job_plan.hpp"
#include "cli/interrupt.hpp"
#include "cluster/join.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/run_key.hpp"
#include "configs/config.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

struct JobSetup {
  std::shared_ptr<const JobPlan> plan;
  std::shared_ptr<InputSource> source;
  std::shared_ptr<JobObserver> observer;  ///< process 0
  RoundPlan rounds;                       ///< process 0
  bool inspect = false;                   ///< show every tensor to the observer after each step
  std::string run_directory;              ///< process 0; empty: the work leaves nothing behind
  std::string trace_folder;               ///< where traces go; empty: they stay in memory
  int rounds_ahead = 1;                   ///< rounds begun before the current one is complete
  /// Puts something between the runtime and the programs; tests plant faults with it. May be empty.
  std::function<ProgramFactory(ProgramFactory)> wrap_programs;
  /// Devices run queues of this kind; tests play GPUs with it. May be empty.
  WorkQueueFactory make_queue;
  Checkpoints checkpoints;           ///< process 0
  std::vector<PlantedFault> faults;  ///< of tests
  /// Lines for the user of a job that has failed, before the cause: of process 0, and of processes
  /// that say it in its place when it is lost. May wait for a disk, and may be empty.
  std::function<std::string(FailureKind kind)> after_failure;
  bool quiet = false;              ///< somebody else tells the user what a signal does
  Interrupt* interrupt = nullptr;  ///< who asks for an early end; may be null
};

/// How it ended.
struct JobEnd {
  Failure failure;          ///< empty: every round is complete, or an interrupt ended it
  bool reported = false;    ///< the failure has been printed
  std::string advice = {};  ///< what to do now: whole lines, before the cause
};

/// Blocks until the job has ended. Returns its failure, empty when there is none.
Failure RunInProcess(const JobSetup& setup);

/// This process among the others.
struct Membership {
  std::shared_ptr<const ProcessPlan> processes;
  ProcessId self = 0;
  RunKey key;
  Joined joined;
};

/// The same, with the other processes. They must all call it, with the same plan and plan of
/// processes. After a failure the caller must end the process without destroying anything else:
/// threads may be stuck below (QuickExit).
JobEnd RunAmongProcesses(const JobSetup& setup, Membership membership);

/// Flushes what was printed and ends the process at once.
[[noreturn]] void QuickExit(int exit_code);

/// How long a process of a failed job may take to end by itself: a device can be deep in a library.
inline constexpr std::chrono::seconds kUnwinding{4};

/// Where the modules of `config` get their inputs: the data files, or nothing for synthetic ones.
/// Checks every row, and of every image the header, or all of it where rows may be skipped. Throws
/// DataError naming the first faults.
std::shared_ptr<InputSource> OpenInputs(const Config& config);

}  // namespace troupe
