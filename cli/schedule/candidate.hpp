// One schedule for a configuration: what is drawn, simulated and measured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job_plan.hpp"
#include "cli/commands.hpp"

namespace troupe {

/// "1f1b", "gpipe", "zb-h1", "interleaved", "interleaved:4", "csv:FILE" as the overrides that say
/// the same. Throws LayoutError for what has none of these forms.
std::vector<std::string> OverridesOf(const std::string& kind);

struct Candidate {
  std::string kind;  ///< as it was asked for; "1f1b" where the file says so
  std::shared_ptr<const JobPlan> plan;
  std::int64_t microbatches() const { return plan->config().schedule.microbatches; }
};

/// Loads the configuration with `kind` (empty: its own) and `microbatches` (0: its own) on top.
/// Throws ConfigErrors, LayoutError; also where modules share ranks, which take turns in phases
/// that no pipeline schedule describes.
Candidate LoadCandidate(const ConfigArguments& arguments, const std::string& kind,
                        std::int64_t microbatches);

}  // namespace troupe
