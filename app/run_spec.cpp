#include "app/run_spec.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "app/cause.hpp"
#include "app/handed_config.hpp"
#include "app/resume.hpp"
#include "app/run_directory.hpp"
#include "app/run_facts.hpp"
#include "app/run_folders.hpp"
#include "app/saved_run.hpp"
#include "app/state_change.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/saved_parameters.hpp"
#include "cluster/variables.hpp"
#include "configs/paths.hpp"
#include "layout/text.hpp"
#include "modules/device/backend.hpp"
#include "plan/stage_parts.hpp"

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

/// Whether --resume names a run without a checkpoint, of which other processes may hold a state.
bool MayBeHeld(const ClusterArguments& arguments) {
  const std::string& run = arguments.resume;
  return arguments.restarts > 0 && !run.empty() && IsThere(ResolvedFile(run)) &&
         !NewestCheckpoint(run);
}

/// The checkpoint that --from names.
std::string CheckpointFrom(const ClusterArguments& arguments) {
  const std::string& from = arguments.from;
  const std::string run = RunDirectoryOf(from);
  if (run.empty()) {
    throw LaunchError("--from " + from + ": expected a run directory or a checkpoint of one");
  }
  if (run != from) {
    if (arguments.from_step) throw LaunchError("--from-step: " + from + " is one checkpoint");
    return from;
  }
  if (!arguments.from_step) {
    if (const auto newest = NewestCheckpoint(run, PrintWarning)) return *newest;
    throw LaunchError("--from " + from +
                      ": expected a run with a complete checkpoint, found none in it");
  }
  std::vector<std::string> steps;
  for (const FoundCheckpoint& found : AllCheckpoints(run)) {
    if (found.step == *arguments.from_step && found.fault.empty()) return found.folder;
    if (found.fault.empty()) steps.push_back(std::to_string(found.step));
  }
  throw LaunchError("--from-step " + std::to_string(*arguments.from_step) + ": " + run +
                    " has no complete checkpoint of it, but of " +
                    (steps.empty() ? "no step" : "steps " + Listed(steps, ", ")));
}

/// The checkpoint that the job goes on from.
std::string CheckpointOf(const ClusterArguments& arguments) {
  return arguments.resume.empty() ? CheckpointFrom(arguments) : *NewestCheckpoint(arguments.resume);
}

/// Names the newest parameters of each run that modules start from, so that all processes of the
/// launcher read the same while that run goes on.
void SettleWeightsRuns(LoadedConfig& loaded) {
  bool any = false;
  const auto settle = [&](std::optional<std::string>& weights) {
    const std::string run = weights ? WeightsRun(*weights) : "";
    if (run.empty()) return;
    try {
      weights = std::string(kRunWeights) + NewestParameters(run);
    } catch (const std::runtime_error& e) {
      throw LaunchError(e.what());
    }
    any = true;
  };
  for (ModuleConfig& module : loaded.config.modules) settle(module.weights);
  for (EdgeConfig& edge : loaded.config.edges) {
    if (edge.through) settle(edge.through->weights);
  }
  if (any) loaded.resolved_toml = ResolvedToml(loaded.config);
}

/// The file to load, and all values on top of it.
ConfigArguments SettledConfig(const ClusterArguments& arguments, const char* verb) {
  ConfigArguments config = arguments.work.config;
  if (arguments.from_step && arguments.from.empty()) {
    throw LaunchError("--from-step needs --from RUN_DIRECTORY");
  }
  const std::string run = arguments.resume + RunDirectoryOf(arguments.from);
  if (config.path.empty() && run.empty()) {
    throw LaunchError(std::string("CONFIG is required: troupe ") + verb +
                      " CONFIG, or --resume RUN_DIRECTORY to resume a run with its own");
  }
  if (config.path.empty()) {
    config.path = ResolvedFile(run);
    if (!MayBeHeld(arguments)) {
      if (!arguments.resume.empty()) RequireCheckpoint(arguments.resume);
      config.text = RequireManifest(CheckpointOf(arguments)).run.configuration;
    }
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
  std::int64_t trained = RequireManifest(*NewestCheckpoint(directory)).run.step;
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
  if (!member.child()) SettleWeightsRuns(run.loaded);
  if (!member.child()) RequireDataFiles(run.loaded);
  run.plan = std::make_shared<const JobPlan>(run.config());
  if (!member.child()) RequireBackend(run.loaded);
  return run;
}

/// Throws unless every name is of a module or projector, or kDataName.
static void RequireKnown(const std::set<std::string>& accepted,
                         const std::vector<const Config*>& configs) {
  std::set<std::string> known = {kDataName};
  for (const Config* const config : configs) {
    for (const ModuleConfig& module : config->modules) known.insert(module.name);
    for (const EdgeConfig& edge : config->edges) known.insert(ProjectorName(edge));
  }
  for (const std::string& name : accepted) {
    if (known.contains(name)) continue;
    throw LaunchError("--accept " + name + ": expected " +
                      ListedWithOr(std::vector<std::string>(known.begin(), known.end())) +
                      ", got another name");
  }
}

/// Prints what becomes of modules, and throws unless the user has asked for all of it.
static void RequireAccepted(const std::string& argument, const std::vector<PartChange>& changes,
                            const std::set<std::string>& accepted) {
  std::string refused;
  std::vector<std::string> names;
  for (const PartChange& change : changes) {
    const std::string line = change.part + ": " + change.line;
    if (accepted.contains(change.part)) {
      std::cerr << argument << ": " << line << '\n' << std::flush;
      continue;
    }
    refused += "\n  " + line;
    names.push_back(change.part);
  }
  if (names.empty()) return;
  throw LaunchError(argument + ": the state differs:" + refused +
                    "\nto go on with it, use --accept " + Listed(names, ","));
}

Config ConfigurationOf(const CheckpointManifest& manifest, const std::string& checkpoint) {
  ConfigArguments arguments;
  arguments.path = checkpoint + "/manifest.json";
  arguments.text = manifest.run.configuration;
  return LoadConfigOf(arguments, -1).config;
}

void ResumeRun(RunSpec& run) {
  ClusterArguments& arguments = run.arguments;
  const bool new_run = arguments.resume.empty();
  if (new_run && arguments.from.empty()) return;
  if (!new_run) RequireCheckpoint(arguments.resume);
  const std::string checkpoint = CheckpointOf(arguments);
  const std::string argument =
      new_run ? "--from " + arguments.from : "--resume " + arguments.resume;
  const CheckpointManifest manifest = RequireManifest(checkpoint);
  const Config before = ConfigurationOf(manifest, checkpoint);
  const ResumeTerms terms{{arguments.accept.begin(), arguments.accept.end()}, new_run};
  RequireKnown(terms.accepted, {&run.config(), &before});
  const ResumeCheck check = CheckResume(run.loaded, before, terms);
  if (!check.refusal.empty()) throw LaunchError(argument + ": " + check.refusal);
  try {
    RequireAccepted(argument, CompareState(run.config(), manifest), terms.accepted);
  } catch (const LaunchError&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw LaunchError(argument + ": " + e.what());
  }
  RequireSameFolders(new_run ? RunDirectoryOf(arguments.from) : arguments.resume, run.config(),
                     terms.accepted);
  // The steps of run.epochs are known when the rows are counted (app/train_work.cpp).
  if (!new_run && !run.config().run.epochs) RequireSteps(arguments.resume, run.config().run);
  if (new_run && !run.config().run.epochs && run.config().run.steps <= manifest.run.step) {
    throw LaunchError(argument + ": expected run.steps of more than the " +
                      std::to_string(manifest.run.step) + " that are done, got " +
                      std::to_string(run.config().run.steps));
  }
  for (const std::string& line : check.tuned) {
    std::cerr << argument << ": from here on " << line << '\n' << std::flush;
  }
  if (!check.layout.empty()) {
    std::cerr << argument << ": from here on in another layout: " << check.layout << '\n'
              << std::flush;
  }
  if (!check.rounding.empty()) {
    PrintWarning(argument + ": the same state, rounded otherwise from here on: " + check.rounding);
  }
  arguments.into = arguments.resume;
  if (new_run) arguments.start = checkpoint;
}

void ResumeAsFirst(RunSpec& run) {
  ClusterArguments& arguments = run.arguments;
  if (!MayBeHeld(arguments)) return ResumeRun(run);
  arguments.into = arguments.resume;
  arguments.generation = std::max(arguments.generation, std::int64_t{1});
}

}  // namespace troupe
