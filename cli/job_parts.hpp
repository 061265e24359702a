// What a run in one process and a run in several have in common.
#pragma once

#include <chrono>
#include <memory>

#include <caf/scoped_actor.hpp>

#include "actors/node_actor.hpp"
#include "actors/watchdog.hpp"
#include "cli/run_job.hpp"

namespace troupe {

/// What the Node of process `self` needs wherever it runs. `plane` is null for a job of one
/// process.
NodeConfig NodeOf(const JobSetup& setup, std::shared_ptr<const ProcessPlan> processes,
                  ProcessId self, std::shared_ptr<DataPlane> plane,
                  std::shared_ptr<AbortSignal> abort, std::shared_ptr<TensorStore> tensors);

WatchdogConfig WatchdogOf(const Config& config, const NodeConfig& node);

/// From now on the first signal ends the job after its step, the second the process.
void ListenToUser(const JobSetup& setup, const Node& node);

/// Runs the job to its end. `patience`: how long a failed job's process may take to end by itself;
/// `abort` tells that it has failed.
JobEnd Await(caf::scoped_actor& self, const Node& node);

std::chrono::nanoseconds Seconds(double seconds);

}  // namespace troupe
