// Plans as text, for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/search/nearest.hpp"
#include "plan/search/planner.hpp"

namespace troupe {

/// "35.1"; "0.351" for steps of less than 10 ms.
std::string MsText(double seconds);

/// The last columns of a table of plans: each module, the schedule and the batch.
std::vector<std::string> LayoutColumns(const Config& config);
/// What stands in them: the layout of each module, the kind, and microbatches x samples.
std::vector<std::string> LayoutCells(const Config& config);

/// Returns a line for each plan, and one for the configuration as it stands, if it can run.
std::string TableOf(const std::vector<Plan>& plans, const std::optional<Plan>& now);

/// Returns why the others take longer than the first plan: what they spend more on, and less.
std::string ReasonsOf(const std::vector<Plan>& plans, const std::optional<Plan>& now);

/// Returns where the milliseconds of plan `number` go, line by line, next to those of plan `against`; 0:
/// alone. Numbers count from 1.
std::string ExplanationOf(const std::vector<Plan>& plans, std::size_t number, std::size_t against);

/// Returns what else there is to know of plans, of which `asked` were asked for: that fewer devices are
/// about as fast, and why there are no more plans.
std::string NotesOn(const Plans& plans, std::size_t asked);

/// "model.toml: no layout of language fits on 8 devices of 80 GB\n"
std::string NothingFitsText(const std::string& path, const Config& config, int gpus,
                            const JobDevices& devices);

/// Returns the best plan without devices of other kinds, next to `best`; "" if there is none.
std::string WithoutOwnText(const Plans& without, const Plan& best);

/// Returns what would make a job fit that does not.
std::string TextOf(const std::vector<NearestChange>& changes);

}  // namespace troupe
