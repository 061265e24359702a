// Builds a job from a configuration and runs it in this process.
#pragma once

#include <memory>
#include <string>

#include "actors/director_actor.hpp"
#include "actors/job_plan.hpp"
#include "configs/config.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

struct JobSetup {
  std::shared_ptr<const JobPlan> plan;
  std::shared_ptr<InputSource> source;
  std::shared_ptr<JobObserver> observer;
  RoundPlan rounds;
  bool inspect = false;    ///< show every tensor to the observer after each step
  std::string trace_path;  ///< empty: no trace file
  int rounds_ahead = 1;    ///< rounds begun before the current one is complete
  /// Puts something between the runtime and the programs; tests plant faults with it. May be empty.
  std::function<ProgramFactory(ProgramFactory)> wrap_programs;
};

/// Blocks until the job has ended. Returns the cause of its failure, empty when there is none.
std::string RunInProcess(const JobSetup& setup);

/// Where the modules of `config` get their inputs: the data files, or nothing for synthetic ones.
/// Throws DataError naming what is wrong with the files.
std::shared_ptr<InputSource> OpenInputs(const Config& config);

}  // namespace troupe
