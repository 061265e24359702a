// What must hold between keys. Each check reports at the key that is most likely wrong, and is
// silent about values that could not be read.
#pragma once

#include <cstdint>
#include <string>

#include "configs/config.hpp"
#include "configs/report.hpp"

namespace troupe {

void CheckRun(const Config& config, Report& report);        ///< run, schedule, optimizer, data
void CheckSchedule(const Config& config, Report& report);   ///< what a kind of schedule needs
void CheckCluster(const Config& config, Report& report);    ///< cluster, its nodes, transport
void CheckPlacement(const Config& config, Report& report);  ///< ranks, layouts, inline_in
void CheckModules(const Config& config, Report& report);    ///< sizes inside each module
void CheckGraph(const Config& config, Report& report);      ///< what may feed what
void CheckEdges(const Config& config, Report& report);      ///< projectors and shared ranks

/// All of the above.
void CheckConfig(const Config& config, Report& report);

/// Fills `file_text` where the kind of schedule has a file.
void ReadScheduleFile(ScheduleConfig& schedule, Report& report);

/// "modules.NAME.KEY".
std::string KeyOf(const ModuleConfig& module, const std::string& key);
/// "edges.FROM.TO", or with "." and `key` behind it.
std::string KeyOf(const EdgeConfig& edge, const std::string& key = "");

/// The sizes a module is cut by: an inline module has its host's.
const Layout& LayoutOf(const Config& config, const ModuleConfig& module);

/// tp*cp*pp*dp, exact as long as it can be a number of ranks.
std::int64_t RanksOf(const Layout& layout);

/// "tp 2 * dp 3", or with another sign between; only the sizes above 1.
std::string SizesText(const Layout& layout, const std::string& between = " * ");

/// A key with its value, as it appears in messages.
struct Named {
  std::string key;
  std::int64_t value = 0;
};

/// "; tp can be 1, 2 or 4", for an error at `key`: the divisors of `number`; where there are many,
/// the two around `got`, which is at least 1.
std::string DivisorHint(const std::string& key, std::int64_t number, std::int64_t got);

/// Reports when `number` is not a multiple of `divisor`, at the one that was written later.
void ExpectMultiple(const Named& number, const Named& divisor, Report& report);

}  // namespace troupe
