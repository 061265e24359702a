// Builds a job from a configuration and runs it: alone, or as one process of several.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/activity.hpp"
#include "actors/job_course.hpp"
#include "app/interrupt.hpp"
#include "cluster/join.hpp"
#include "cluster/run_key.hpp"
#include "configs/config.hpp"
#include "modules/held_files.hpp"
#include "modules/input_source.hpp"
#include "modules/task_thread.hpp"
#include "modules/work_queue.hpp"
#include "plan/job_plan.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

class FeedPort;

struct JobSetup {
  std::shared_ptr<const JobPlan> plan;
  std::shared_ptr<InputSource> source;
  std::shared_ptr<JobObserver> observer;  ///< process 0
  RoundPlan rounds;                       ///< process 0
  bool inspect = false;                   ///< show every tensor to the observer after each step
  std::string run_directory;              ///< process 0; empty: the work writes no files
  std::string trace_folder;               ///< for traces; empty: they stay in memory
  int rounds_ahead = 1;                   ///< rounds begun before the current one is complete
  /// Wraps the programs; tests plant faults with it. May be empty.
  std::function<ProgramFactory(ProgramFactory)> wrap_programs;
  /// Makes the work queues of devices; tests emulate GPUs with it. May be empty.
  WorkQueueFactory make_queue;
  Checkpoints checkpoints;    ///< process 0
  bool copies_state = false;  ///< take memory for checkpoint.async; in every process
  bool may_replace = false;   ///< process 0: a slow process, by a spare
  /// Process 0: whether the job would be larger with so many spares. It then meets again after the next
  /// checkpoint, with them. May be empty: it does not.
  std::function<bool(int spares)> grows_with;
  std::vector<PlantedFault> faults;  ///< of tests
  FeedPort* feed = nullptr;          ///< where feed machines come; outlives the job; null: nowhere
  /// Returns lines to print before the cause of a failure. Set in process 0, and in processes that
  /// print them if process 0 is lost. May wait for a disk. May be empty.
  std::function<std::string(FailureKind kind)> after_failure;
  /// Returns a line for the user if this process meets the others again after a failure instead of
  /// ending; nullopt if it ends. May be empty: it ends.
  std::function<std::optional<std::string>(const Failure& failure)> goes_on;
  /// Writes files of checkpoints; outlives the generations of a job. May be null.
  std::shared_ptr<TaskThread> writer;
  /// Held while a checkpoint is published, which removes older ones; outlives them, too. May be null.
  std::shared_ptr<std::timed_mutex> publishing;
  /// States of the job in memory; outlives them, too. Null: none are held.
  std::shared_ptr<HeldFiles> held;
  std::shared_ptr<TaskThread> memory_writer;  ///< makes their files; outlives them, too
  /// Process 0: when the job is done, for how long it answers processes that do not know that.
  std::chrono::milliseconds farewell{0};
  bool quiet = false;              ///< the launcher reports signals
  bool stops_soon = false;         ///< the last generation was asked to end
  Interrupt* interrupt = nullptr;  ///< source of requests to end early; may be null
};

/// The end of a job.
struct JobEnd {
  std::int64_t num_silent = 0;  ///< other processes that may not know of it
  Failure failure;              ///< empty: every round is complete, or an interrupt ended it
  bool reported = false;        ///< the failure has been printed
  bool goes_on = false;     ///< JobSetup::goes_on has said so, and nothing of the job is left here
  std::string advice = {};  ///< whole lines to print before the cause
};

/// Blocks until the job has ended. Returns its failure, empty if there is none.
Failure RunInProcess(const JobSetup& setup);

/// This process among the others.
struct Membership {
  std::shared_ptr<const ProcessPlan> processes;
  ProcessId self = 0;
  RunKey key;
  Joined joined;
};

/// Runs the job together with the other processes, which must all call it with the same plan and
/// the same plan of processes. After a failure the caller must end the process without destroying
/// anything else (QuickExit): threads of libraries may be stuck. If the end says that the process goes
/// on, no such thread is left. Ends the process itself if it cannot achieve that in time.
JobEnd RunAmongProcesses(const JobSetup& setup, Membership membership);

/// Flushes standard output and error and ends the process immediately.
[[noreturn]] void QuickExit(int exit_code);

/// Time for a process of a failed job to end by itself: a device can be deep in a library.
inline constexpr std::chrono::seconds kUnwinding{4};

/// Opens the inputs of the modules of `config`: the data files, or none for synthetic modules.
/// Checks every row and the header of every image, or all of the image if rows may be skipped.
/// Throws DataError with the first faults.
std::shared_ptr<InputSource> OpenInputs(const Config& config);

}  // namespace troupe
