// Checks of relations between keys. Each check reports at the key that is most likely wrong, and
// ignores values that could not be read.
#pragma once

#include <cstdint>
#include <string>

#include "configs/config.hpp"
#include "configs/report.hpp"

namespace troupe {

void CheckRun(const Config& config, Report& report);        ///< run, schedule, optimizer, data
void CheckSchedule(const Config& config, Report& report);   ///< requirements of the schedule's kind
void CheckCluster(const Config& config, Report& report);    ///< cluster, its nodes, transport
void CheckPlacement(const Config& config, Report& report);  ///< ranks, layouts, inline_in
void CheckModules(const Config& config, Report& report);    ///< sizes inside each module
void CheckGraph(const Config& config, Report& report);      ///< which modules may feed which
void CheckEdges(const Config& config, Report& report);      ///< projectors and shared ranks

/// Runs all of the above.
void CheckConfig(const Config& config, Report& report);

/// Fills `file_text` if the kind of schedule has a file.
void ReadScheduleFile(ScheduleConfig& schedule, Report& report);

/// "modules.NAME.KEY".
std::string KeyOf(const ModuleConfig& module, const std::string& key);
/// "edges.FROM.TO", or "edges.FROM.TO.KEY".
std::string KeyOf(const EdgeConfig& edge, const std::string& key = "");

/// Returns the sizes that cut a module: those of its host if the module is inline.
const Layout& LayoutOf(const Config& config, const ModuleConfig& module);

/// Returns tp*cp*pp*dp, exact as long as it can be a number of ranks.
std::int64_t RanksOf(const Layout& layout);

/// Returns the sizes above 1: "tp 2 * dp 3". `between` replaces the sign.
std::string SizesText(const Layout& layout, const std::string& between = " * ");

/// Returns the divisors of `number` for an error at `key`: "; tp can be 1, 2 or 4". If there are
/// many, returns the two around `got`, which is at least 1.
std::string DivisorHint(const std::string& key, std::int64_t number, std::int64_t got);

/// Reports at the key written later if `number` is not a multiple of `divisor`.
void ExpectMultiple(const Named& number, const Named& divisor, Report& report);

}  // namespace troupe
