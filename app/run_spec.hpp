// One run: its arguments and its configuration. The process that the user starts loads and checks
// the configuration once; its children inherit it (app/handed_config.hpp).
//
// The files that a configuration names (data, tokenizer, schedule) are opened by the process that
// uses them; processes compare their contents when they meet.
#pragma once

#include <memory>
#include <string>

#include "app/cluster_run.hpp"
#include "checkpoint/manifest.hpp"
#include "configs/loader.hpp"
#include "plan/job_plan.hpp"

namespace troupe {

struct RunSpec {
  ClusterArguments arguments;
  LoadedConfig loaded;
  std::shared_ptr<const JobPlan> plan;
  const Config& config() const { return loaded.config; }
};

/// Loads CONFIG, or without it the configuration of the run to resume, and checks it completely
/// before anything starts: also for missing files of [data] and a backend that this build lacks.
/// `verb` is for messages. Throws ConfigErrors, LayoutError, and LaunchError if no configuration is
/// named.
RunSpec LoadRun(ClusterArguments arguments, const char* verb);

/// Refuses to resume the run in `directory` for fewer than the steps it has trained: the results of
/// the others would be lost. Throws LaunchError.
void RequireSteps(const std::string& directory, const RunConfig& run);

/// Returns the configuration that the checkpoint was written with. Throws ConfigErrors.
Config ConfigurationOf(const CheckpointManifest& manifest, const std::string& checkpoint);

/// Finds the checkpoint of --resume or --from, and prints what differs from here on. Makes --resume
/// the directory to write to. Throws LaunchError for a checkpoint that a job of this configuration
/// cannot go on from.
void ResumeRun(RunSpec& run);
/// The same for process 0 of several that are started one by one. If the run has no checkpoint, the
/// others may hold its state in memory: then process 0 comes back to their job.
void ResumeAsFirst(RunSpec& run);

}  // namespace troupe
