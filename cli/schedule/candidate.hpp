// One schedule of a configuration, to draw, simulate or measure, and the options that name it:
// --kinds, --kind and --microbatches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "plan/job_plan.hpp"

namespace troupe {

/// Returns the kinds in the values of `flag`, each a list separated by commas. Checks that files
/// can be read. Throws LaunchError with the flag and the text for an unknown kind, "interleaved:0",
/// an empty item, or a file that cannot be read.
std::vector<std::string> KindsOf(const std::string& flag, const std::vector<std::string>& values);

/// Returns numbers of microbatches in the same way.
std::vector<std::int64_t> CountsOf(const std::string& flag, const std::vector<std::string>& values);

/// Returns the overrides of the configuration for a kind: "1f1b", "gpipe", "zb-h1", "interleaved",
/// "interleaved:4" or "csv:FILE". Throws LaunchError, as KindsOf with `flag`.
std::vector<std::string> OverridesOf(const std::string& kind, const std::string& flag = "--kinds");

struct Candidate {
  std::string kind;  ///< as requested, else that of the file ("1f1b")
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
