// One schedule of a configuration, to draw, simulate or measure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "plan/job_plan.hpp"

namespace troupe {

struct Candidate {
  std::string kind;   ///< as requested, else that of the file ("1f1b")
  std::string asked;  ///< as requested; empty if the file sets it
  std::shared_ptr<const JobPlan> plan;
  std::int64_t microbatches() const { return plan->config().schedule.microbatches; }
  std::int64_t global_batch() const { return plan->config().global_batch(); }
};

/// Loads the configuration with `kind` (empty: its own) and `microbatches` (0: its own) on top.
/// Throws ConfigErrors, LayoutError, and LaunchError as OverridesOf; also if modules share ranks,
/// which take turns in phases that no pipeline schedule describes.
Candidate LoadCandidate(const ConfigArguments& arguments, const std::string& kind,
                        std::int64_t microbatches);

}  // namespace troupe
