#include "cli/schedule/candidate.hpp"

#include <utility>

#include "cli/schedule/arguments.hpp"
#include "configs/loader.hpp"

namespace troupe {
Candidate LoadCandidate(const ConfigArguments& arguments, const std::string& kind,
                        std::int64_t microbatches) {
  std::vector<std::string> overrides = arguments.overrides;
  for (const std::string& more : OverridesOf(kind)) overrides.push_back(more);
  if (microbatches > 0) {
    overrides.push_back("schedule.microbatches=" + std::to_string(microbatches));
  }
  Candidate candidate;
  Config config = LoadConfig(arguments.path, overrides).config;
  candidate.asked = kind;
  candidate.kind = kind.empty() ? ToString(config.schedule.kind) : kind;
  candidate.plan = std::make_shared<const JobPlan>(std::move(config));
  for (const EdgePlan& edge : candidate.plan->edges()) {
    if (edge.placement == Placement::kDisjoint) continue;
    throw LayoutError("edge " + edge.name +
                      ": its modules share ranks and run in phases, which no pipeline schedule "
                      "describes; expected modules on separate ranks");
  }
  return candidate;
}

}  // namespace troupe
