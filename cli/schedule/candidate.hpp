// One schedule for a configuration: what is drawn, simulated and measured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/job_plan.hpp"
#include "cli/commands.hpp"

namespace troupe {

struct Candidate {
  std::string kind;   ///< as it was asked for; "1f1b" where the file says so
  std::string asked;  ///< the same; empty where the file says so
  std::shared_ptr<const JobPlan> plan;
  std::int64_t microbatches() const { return plan->config().schedule.microbatches; }
  std::int64_t global_batch() const { return plan->config().global_batch(); }
};

/// Loads the configuration with `kind` (empty: its own) and `microbatches` (0: its own) on top.
/// Throws ConfigErrors, LayoutError, LaunchError as OverridesOf; also where modules share ranks,
/// which take turns in phases that no pipeline schedule describes.
Candidate LoadCandidate(const ConfigArguments& arguments, const std::string& kind,
                        std::int64_t microbatches);

}  // namespace troupe
