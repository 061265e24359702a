// What the Director waits for, out of its state.
#include <algorithm>
#include <iterator>

#include "actors/director_parts.hpp"
#include "actors/names.hpp"

namespace troupe {

Waits WaitsOf(const DirectorState& s) {
  ActorWaits mine;
  mine.who = kDirectorName;
  for (const auto& [number, open] : s.open) {
    const auto add = [&, round = number](const std::set<std::size_t>& missing, const char* what,
                                         const std::vector<std::string>& names) {
      for (const std::size_t i : missing) {
        mine.waits.push_back({what, "round", round, names.at(i), true});
      }
    };
    add(open.missing_reports, asked::kReport, s.config.stage_names);
    add(open.missing_norms, asked::kNorm, s.config.update_names);
    std::set<std::size_t> updating;
    std::ranges::set_intersection(open.missing_updates, open.applied,
                                  std::inserter(updating, updating.end()));
    add(updating, asked::kUpdate, s.config.update_names);
  }
  for (const auto& [place, wait] : s.asked_shards) mine.waits.push_back(wait);
  return {{mine}};
}

}  // namespace troupe
