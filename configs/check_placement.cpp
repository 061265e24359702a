#include <algorithm>
#include <set>
#include <vector>

#include "configs/checks.hpp"
#include "configs/schema.hpp"
#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {

static void CheckRanks(const Config& config, const ModuleConfig& module, Report& report) {
  const std::string key = KeyOf(module, "ranks");
  if (!report.Good({key})) return;
  std::set<int> seen;
  for (const int rank : module.ranks) {
    if (!seen.insert(rank).second) {
      return report.Add(key, "rank " + std::to_string(rank) + " is listed twice, expected it once");
    }
  }
  if (!report.Good({"cluster.ranks"})) return;
  const auto outside =
      std::ranges::find_if(module.ranks, [&](int rank) { return rank >= config.cluster.ranks; });
  if (outside == module.ranks.end()) return;
  report.Add(key, "rank " + std::to_string(*outside) + " is not in the job, expected 0 to " +
                      std::to_string(config.cluster.ranks - 1) +
                      " (cluster.ranks = " + std::to_string(config.cluster.ranks) + ")");
}

std::int64_t RanksOf(const Layout& layout) {
  std::int64_t product = 1;  // sizes are at most 65,536 each
  for (const int size : {layout.tp, layout.cp, layout.pp, layout.dp}) {
    product = std::min<std::int64_t>(product * size, INT32_MAX);
  }
  return product;
}

std::string SizesText(const Layout& layout, const std::string& between) {
  std::vector<std::string> sizes;
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kPipeline, Axis::kData}) {
    if (layout.size(axis) == 1) continue;
    sizes.push_back(ToString(axis) + " " + std::to_string(layout.size(axis)));
  }
  return sizes.empty() ? "{}" : Listed(sizes, between.c_str());
}

/// Returns "; dp 3 and dp 2 on the same ranks need ..." if the module has the ranks of a neighbour
/// and the two do not fit on them. With other ranks, the module's own layout is wrong.
static std::string ColocatingHint(const Config& config, const ModuleConfig& module) {
  for (const EdgeConfig& edge : config.edges) {
    if (edge.from != module.name && edge.to != module.name) continue;
    const ModuleConfig* const other = config.Find(edge.from == module.name ? edge.to : edge.from);
    if (other == nullptr || other == &module || !HaveSameRanks(module, *other)) continue;
    const bool fits = std::ssize(module.ranks) % module.layout.dp == 0 &&
                      std::ssize(module.ranks) % other->layout.dp == 0;
    if (fits || !MayColocate(config, edge)) continue;
    return "; " + ColocatingHint(config, edge);
  }
  return "";
}

static void CheckRankCount(const Config& config, const ModuleConfig& module, std::int64_t takes,
                           Report& report) {
  const std::string layout = KeyOf(module, "layout");
  const std::string ranks = KeyOf(module, "ranks");
  const auto given = std::ssize(module.ranks);
  if (!report.Good({ranks}) || takes == given) return;
  const std::string list = Quoted(RanksText(module.ranks)) + (given == 1 ? " is " : " are ");
  const std::string hint = ColocatingHint(config, module);
  const std::string needs = SizesText(module.layout) + " needs ";
  report.AddAtLater({layout, needs + Counted(takes, "rank") + ", but " + ranks + " = " + list +
                                 std::to_string(given) + hint},
                    {ranks, list + Counted(given, "rank") + ", but the layout " + needs +
                                std::to_string(takes) + hint});
}

static void CheckLayout(const Config& config, const ModuleConfig& module, Report& report) {
  const std::string key = KeyOf(module, "layout");
  const auto size = [&](const char* name) { return key + "." + name; };
  if (!report.Good(
          {key, size("tp"), size("cp"), size("pp"), size("dp"), size("ep"), size("etp")})) {
    return;
  }
  CheckRankCount(config, module, RanksOf(module.layout), report);
  for (const ExpertAxis axis : {ExpertAxis::kExpert, ExpertAxis::kTensor}) {
    const int value = module.layout.size(axis);
    if (value == 1 || module.model->num_experts() > 0) continue;
    return report.Add(size(ToString(axis).c_str()),
                      "expected 1 for a module without experts, got " + std::to_string(value));
  }
  ExpectMultiple({KeyOf(module, "experts"), module.model->num_experts()},
                 {size("ep"), module.layout.ep}, report);
  const std::string why = WhyNoExperts(module.layout);
  if (!why.empty()) report.Add(size(module.layout.ep > 1 ? "ep" : "etp"), why);
}

static void CheckInline(const Config& config, const ModuleConfig& module, Report& report) {
  const std::string key = KeyOf(module, "inline_in");
  for (const char* other : {"ranks", "layout", "axis_order", "layers_per_stage"}) {
    if (!report.Knows(KeyOf(module, other))) continue;
    report.Add(key, "given together with " + KeyOf(module, other) +
                        ", expected one of the two: an inline module runs on its host's ranks");
    break;
  }
  const ModuleConfig* host = config.Find(*module.inline_in);
  if (!report.Good({key})) return;
  if (host == nullptr) {
    return report.Add(key, UnknownModule(config, *module.inline_in));
  }
  if (!report.Good({KeyOf(*host, "kind")})) return;
  if (!host->model->computes() || !host->model->takes_rows()) {
    report.Add(key, "expected a module that takes rows of others, got \"" + host->name + "\"");
  } else if (config.FindEdge(module.name, host->name) == nullptr) {
    report.Add(key, "no edge joins the two, expected an [[edges]] from \"" + module.name +
                        "\" to \"" + host->name + "\"");
  }
}

static void CheckEveryRankUsed(const Config& config, Report& report) {
  if (!report.Good({"cluster.ranks", "modules"}) || config.modules.empty()) return;
  std::set<int> used;
  for (const auto& module : config.modules) {
    // Unreadable ranks might be the missing ones.
    if (!report.Good({KeyOf(module, "ranks"), KeyOf(module, "inline_in")})) return;
    used.insert(module.ranks.begin(), module.ranks.end());
  }
  std::vector<int> idle;
  for (int rank = 0; rank < config.cluster.ranks; ++rank) {
    if (!used.contains(rank)) idle.push_back(rank);
  }
  if (idle.empty()) return;
  report.Add("cluster.ranks", "no module uses rank " + RanksText(idle) + ", expected each of the " +
                                  std::to_string(config.cluster.ranks) +
                                  " in the ranks of some module");
}

void CheckPlacement(const Config& config, Report& report) {
  for (const auto& module : config.modules) {
    if (module.inline_in) {
      CheckInline(config, module, report);
      continue;
    }
    if (!report.Good({KeyOf(module, "inline_in")})) continue;
    if (module.ranks.empty() && !report.Knows(KeyOf(module, "ranks"))) {
      report.Add(KeyOf(module, "ranks"), "missing, expected ranks like \"4-7\" or [0, 1, 2, 5]");
    }
    CheckRanks(config, module, report);
    CheckLayout(config, module, report);
  }
  CheckEveryRankUsed(config, report);
}

}  // namespace troupe
