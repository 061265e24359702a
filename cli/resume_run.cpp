#include "cli/resume_run.hpp"

#include <iostream>
#include <string>

#include "checkpoint/run_checkpoints.hpp"
#include "cli/resume.hpp"
#include "cluster/variables.hpp"

namespace troupe {

void SettleConfig(ClusterArguments& arguments, const char* verb) {
  std::string& path = arguments.work.config.path;
  if (!path.empty()) return;
  if (arguments.resume.empty()) {
    throw LaunchError(std::string("CONFIG is required: troupe ") + verb +
                      " CONFIG, or --resume RUN_DIRECTORY to resume a run with its own");
  }
  path = arguments.resume + "/resolved.toml";
}

void ResumeRun(ClusterArguments& arguments) {
  if (arguments.resume.empty()) return;
  if (!NewestCheckpoint(arguments.resume)) {
    throw LaunchError("--resume " + arguments.resume +
                      ": expected a run directory with a complete checkpoint, found none");
  }
  const ConfigArguments& given = arguments.work.config;
  const ResumeCheck check = CheckResume(LoadConfig(given.path, given.overrides),
                                        LoadConfig(arguments.resume + "/resolved.toml").config);
  if (!check.refusal.empty()) {
    throw LaunchError("--resume " + arguments.resume + ": " + check.refusal);
  }
  for (const std::string& line : check.tuned) {
    std::cerr << "--resume " << arguments.resume << ": from here on " << line << '\n' << std::flush;
  }
  if (!check.rounding.empty()) {
    std::cerr << "warning: --resume " << arguments.resume
              << ": the same state, rounded otherwise from here on: " << check.rounding << '\n'
              << std::flush;
  }
  arguments.into = arguments.resume;
}

}  // namespace troupe
