#include "app/run_spec.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

#include "app/cause.hpp"
#include "app/handed_config.hpp"
#include "app/resume.hpp"
#include "app/run_directory.hpp"
#include "app/run_facts.hpp"
#include "app/run_folders.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "cluster/variables.hpp"
#include "configs/paths.hpp"
#include "modules/device/backend.hpp"

namespace troupe {
namespace {

void RequireCheckpoint(const std::string& run_directory) {
  std::error_code unknown;
  const bool there = std::filesystem::exists(run_directory, unknown);
  if (there && NewestCheckpoint(run_directory)) return;
  throw LaunchError(
      "--resume " + run_directory +
      ": expected a run directory with a complete checkpoint, found " +
      (there ? "none in it (checkpoint.every, checkpoint.every_minutes)" : "no such directory"));
}

/// The file to load, and all values on top of it.
ConfigArguments SettledConfig(const ClusterArguments& arguments, const char* verb) {
  ConfigArguments config = arguments.work.config;
  if (config.path.empty() && arguments.resume.empty()) {
    throw LaunchError(std::string("CONFIG is required: troupe ") + verb +
                      " CONFIG, or --resume RUN_DIRECTORY to resume a run with its own");
  }
  if (config.path.empty()) {
    RequireCheckpoint(arguments.resume);
    config.path = ResolvedFile(arguments.resume);
  }
  if (arguments.work.verify && !arguments.work.dtype.empty()) {
    config.overrides.push_back("run.precision=\"" + arguments.work.dtype + "\"");
  }
  return config;
}

void RequireBackend(const LoadedConfig& loaded) {
  const Backend backend = loaded.config.cluster.backend;
  const std::string missing = MissingFor(backend);
  if (missing.empty()) return;
  const auto written = loaded.origins.find("cluster.backend");
  const Place place = written == loaded.origins.end() ? Place() : written->second.place;
  throw ConfigErrors({{place, "cluster.backend = \"" + ToString(backend) + "\": " + missing}});
}

}  // namespace

void RequireSteps(const std::string& directory, const RunConfig& run) {
  std::int64_t trained = ReadManifest(*NewestCheckpoint(directory))->step;
  const RunMetrics metrics = ReadMetrics(directory);
  if (const auto losses = metrics.find("loss"); losses != metrics.end()) {
    trained = std::max(trained, losses->second.back().first);
  }
  if (run.steps >= trained) return;
  throw LaunchError("--resume " + directory + ": expected " +
                    (run.epochs ? "run.epochs for" : "run.steps of") + " at least " +
                    std::to_string(trained) + (run.epochs ? " steps" : "") +
                    ", which it has trained, got " + std::to_string(run.steps));
}

RunSpec LoadRun(ClusterArguments arguments, const char* verb) {
  arguments.work.config = SettledConfig(arguments, verb);
  RunSpec run{std::move(arguments), {}, nullptr};
  const MemberArguments& member = run.arguments.member;
  run.loaded = LoadConfigOf(run.arguments.work.config, member.config_descriptor);
  if (!member.child()) RequireDataFiles(run.loaded);
  run.plan = std::make_shared<const JobPlan>(run.config());
  if (!member.child()) RequireBackend(run.loaded);
  return run;
}

void ResumeRun(RunSpec& run) {
  ClusterArguments& arguments = run.arguments;
  if (arguments.resume.empty()) return;
  RequireCheckpoint(arguments.resume);
  const ResumeCheck check =
      CheckResume(run.loaded, LoadConfig(ResolvedFile(arguments.resume)).config);
  if (!check.refusal.empty()) {
    throw LaunchError("--resume " + arguments.resume + ": " + check.refusal);
  }
  RequireSameFolders(arguments.resume, run.config());
  // The steps of run.epochs are known when the rows are counted (app/train_work.cpp).
  if (!run.config().run.epochs) RequireSteps(arguments.resume, run.config().run);
  for (const std::string& line : check.tuned) {
    std::cerr << "--resume " << arguments.resume << ": from here on " << line << '\n' << std::flush;
  }
  if (!check.rounding.empty()) {
    PrintWarning("--resume " + arguments.resume +
                 ": the same state, rounded otherwise from here on: " + check.rounding);
  }
  arguments.into = arguments.resume;
}

}  // namespace troupe
