// Checks of relations between keys. Each check reports at the key that is most likely wrong, and
// ignores values that could not be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// "modules.NAME.KEY".
std::string KeyOf(const ModuleConfig& module, const std::string& key);
/// "edges.FROM.TO", or "edges.FROM.TO.KEY".
std::string KeyOf(const EdgeConfig& edge, const std::string& key = "");
/// Returns "cluster.nodes.NAME.KEY" for the node at `index`, with its default name if `name` is not
/// legal. Without `key`: the table.
std::string NodeKey(std::string_view name, std::size_t index, std::string_view key = {});

/// Returns "data.sources.2" for the source at position 2, with `key` after it if there is one.
std::string SourceKey(std::size_t index, std::string_view key = {});

/// Returns "n3" for the node at position 3.
std::string DefaultNodeName(std::size_t index);
/// Returns whether `name` is a legal node name: lower-case letters, digits, '.', '_' and '-', a
/// letter or digit first. It is part of process names, log lines and file names.
bool IsNodeName(std::string_view name);
/// Returns whether a count is enough to write the nodes: default names, no addresses, the same
/// number of devices.
bool AreAlike(const std::vector<ClusterNode>& nodes);

/// Returns whether all characters are ASCII letters, digits or one of `others`.
bool IsMadeOfLetters(std::string_view text, std::string_view others);

/// Returns the module whose layout cuts `module`: its host if it is inline.
const ModuleConfig& HostOf(const Config& config, const ModuleConfig& module);

/// Returns tp*cp*pp*dp, exact as long as it can be a number of ranks.
std::int64_t RanksOf(const Layout& layout);

/// Returns the sizes above 1: "tp 2 * dp 3". `between` replaces the sign.
std::string SizesText(const Layout& layout, const std::string& between = " * ");

/// Returns the divisors of `number` for an error at `key`: "; tp can be 1, 2 or 4". If there are
/// many, returns the two around `got`, which is at least 1.
std::string DivisorHint(const std::string& key, std::int64_t number, std::int64_t got);

/// Reports at the key written later if `number` is not a multiple of `divisor`.
void ExpectMultiple(const Named& number, const Named& divisor, Report& report);

/// Returns the first module that computes and whose kind was read without an error; null if none.
const ModuleConfig* FindComputing(const Config& config, const Report& report);

/// Returns `unknown module "NAME"` with the nearest name of a module, else with all names.
std::string UnknownModule(const Config& config, const std::string& name);

/// Reports learning rates of `table`, a module's or a projector's, whose lower one is above the
/// higher. `inherited` comes before [optimizer].
void CheckOwnRates(const OptimizerOverride& own, const OptimizerOverride& inherited,
                   const std::string& table, const Config& config, Report& report);

// Modules that take turns on the same ranks.

/// Returns the ranks of both, ascending.
std::vector<int> SharedRanks(const ModuleConfig& a, const ModuleConfig& b);
/// Returns whether the two have the same ranks, in any order, and at least one.
bool HaveSameRanks(const ModuleConfig& a, const ModuleConfig& b);

/// Returns whether the source of the edge may share the ranks of its destination: it has no other
/// edges.
bool MayColocate(const Config& config, const EdgeConfig& edge);

/// Returns layouts with which the ends of an edge could share ranks, at least as many as each has:
/// "dp 3 and dp 2 on the same ranks need a multiple of 6 ranks: e.g. 6 ranks, vision tp 2 dp 3,
/// language pp 3 dp 2".
std::string ColocatingHint(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
