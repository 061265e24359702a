#include "cli/schedule/candidate.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "configs/config_error.hpp"
#include "configs/loader.hpp"
#include "schedule/action_table.hpp"

namespace troupe {
namespace {

/// Stages per rank of a table of actions; 1 where it cannot be read, which the loader tells better.
int ChunksIn(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  try {
    const ActionTable table = ParseActionTable(text.str());
    int stages = 1;
    for (const auto& row : table.rows) {
      for (const Action& action : row) stages = std::max(stages, action.stage + 1);
    }
    return std::max(1, stages / static_cast<int>(table.rows.size()));
  } catch (const std::invalid_argument&) {
    return 1;
  }
}

}  // namespace

std::vector<std::string> OverridesOf(const std::string& kind) {
  if (kind.empty()) return {};
  const auto colon = kind.find(':');
  const std::string name = kind.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : kind.substr(colon + 1);
  if (name == "interleaved" && colon != std::string::npos) {
    return {"schedule.kind=interleaved", "schedule.chunks=" + rest};
  }
  if (name == "csv" && !rest.empty()) {
    return {"schedule.kind=csv", "schedule.file=" + rest,
            "schedule.chunks=" + std::to_string(ChunksIn(rest))};
  }
  if (colon != std::string::npos || name == "csv") {
    throw LayoutError("schedule kind \"" + kind +
                      "\": expected 1f1b, gpipe, zb-h1, interleaved[:CHUNKS] or csv:FILE");
  }
  return {"schedule.kind=" + name};
}

Candidate LoadCandidate(const ConfigArguments& arguments, const std::string& kind,
                        std::int64_t microbatches) {
  std::vector<std::string> overrides = arguments.overrides;
  for (const std::string& more : OverridesOf(kind)) overrides.push_back(more);
  if (microbatches > 0) {
    overrides.push_back("schedule.microbatches=" + std::to_string(microbatches));
  }
  Candidate candidate;
  Config config = LoadConfig(arguments.path, overrides).config;
  candidate.kind = kind.empty() ? config.schedule.kind : kind;
  candidate.plan = std::make_shared<const JobPlan>(std::move(config));
  for (const EdgePlan& edge : candidate.plan->edges()) {
    if (edge.placement == Placement::kDisjoint) continue;
    throw LayoutError("edge " + edge.name +
                      ": its modules share ranks and run in phases, which no pipeline schedule "
                      "describes; expected modules on ranks of their own");
  }
  return candidate;
}

}  // namespace troupe
