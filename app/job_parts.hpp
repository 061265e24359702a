// The common parts of a run in one process and of a run in several.
#pragma once

#include <memory>

#include <caf/scoped_actor.hpp>

#include "actors/node_actor.hpp"
#include "actors/watchdog.hpp"
#include "app/run_job.hpp"

namespace troupe {

/// Returns the configuration of the Node of process `self`. `plane` is null for a job of one
/// process.
NodeConfig NodeOf(const JobSetup& setup, std::shared_ptr<const ProcessPlan> processes,
                  ProcessId self, std::shared_ptr<DataPlane> plane,
                  std::shared_ptr<AbortSignal> abort, std::shared_ptr<TensorStore> tensors);

WatchdogConfig WatchdogOf(const Config& config, const NodeConfig& node);

/// Makes the first signal end the job after its step, and the second end the process.
void ListenToUser(const JobSetup& setup, const Node& node);

/// Runs the job to its end.
JobEnd Await(caf::scoped_actor& self, const Node& node);

/// Checks every second while the result lives, and raises `abort` when `directory` is deleted,
/// moved or replaced: nothing more of the run could be saved. Runs on a separate, detached thread,
/// since a file system may not answer.
[[nodiscard]] std::shared_ptr<void> GuardDirectory(const std::string& directory,
                                                   std::shared_ptr<AbortSignal> abort);

}  // namespace troupe
