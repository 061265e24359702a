// Plans as text, for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/search/nearest.hpp"
#include "plan/search/planner.hpp"

namespace troupe {

/// Returns a line for each plan, and one for the configuration as it stands, if it can run.
std::string TableOf(const std::vector<Plan>& plans, const std::optional<Plan>& now);

/// Returns where the milliseconds of plan `number` go, line by line, next to those of plan `against`; 0:
/// alone. Numbers count from 1.
std::string ExplanationOf(const std::vector<Plan>& plans, std::size_t number, std::size_t against);

/// Returns what else there is to know of plans, of which `asked` were asked for: that fewer devices are
/// about as fast, and why there are no more plans.
std::string NotesOn(const Plans& plans, std::size_t asked);

/// Returns what would make a job fit that does not.
std::string TextOf(const std::vector<NearestChange>& changes);

}  // namespace troupe
