#include "configs/checks.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "configs/suggest.hpp"
#include "layout/text.hpp"

namespace troupe {

std::string KeyOf(const ModuleConfig& module, const std::string& key) {
  return "modules." + module.name + "." + key;
}

std::string KeyOf(const EdgeConfig& edge, const std::string& key) {
  const std::string name = "edges." + edge.from + "." + edge.to;
  return key.empty() ? name : name + "." + key;
}

std::string NodeKey(std::string_view name, std::size_t index, std::string_view key) {
  std::string dotted = "cluster.nodes.";
  dotted += IsNodeName(name) ? std::string(name) : DefaultNodeName(index);
  return key.empty() ? dotted : dotted + "." + std::string(key);
}

std::string SourceKey(std::size_t index, std::string_view key) {
  const std::string dotted = "data.sources." + std::to_string(index);
  return key.empty() ? dotted : dotted + "." + std::string(key);
}

std::string DefaultNodeName(std::size_t index) { return "n" + std::to_string(index); }

bool IsMadeOfLetters(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

bool IsNodeName(std::string_view name) {
  const auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  return !name.empty() && IsMadeOfLetters(name, "._-") && IsMadeOfLetters(name.substr(0, 1), "") &&
         std::ranges::none_of(name, capital);
}

bool AreAlike(const std::vector<ClusterNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool alike = nodes[i].name == DefaultNodeName(i) && nodes[i].address.empty() &&
                       nodes[i].devices == nodes.front().devices;
    if (!alike) return false;
  }
  return true;
}

const ModuleConfig* FindComputing(const Config& config, const Report& report) {
  const auto found = std::ranges::find_if(config.modules, [&](const ModuleConfig& module) {
    return module.model->computes() && report.Good({KeyOf(module, "kind")});
  });
  return found == config.modules.end() ? nullptr : &*found;
}

std::string UnknownModule(const Config& config, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& module : config.modules) names.push_back(module.name);
  const std::string nearest = Nearest(name, names);
  return "unknown module \"" + name + "\"; " +
         (nearest.empty() ? "expected " + Alternatives(names)
                          : "did you mean \"" + nearest + "\"?");
}

const ModuleConfig& HostOf(const Config& config, const ModuleConfig& module) {
  const ModuleConfig* host = module.inline_in ? config.Find(*module.inline_in) : nullptr;
  return host == nullptr ? module : *host;
}

std::string DivisorHint(const std::string& key, std::int64_t number, std::int64_t got) {
  constexpr std::size_t kMostListed = 8;
  std::set<std::int64_t> divisors;
  for (std::int64_t low = 1; low * low <= number; ++low) {
    if (number % low == 0) divisors.insert({low, number / low});
  }
  if (divisors.empty()) return "";
  if (divisors.size() > kMostListed) {
    const auto above = divisors.upper_bound(got);
    const std::string below = std::to_string(*std::prev(above));
    if (above == divisors.end()) return "; the nearest is " + below;
    return "; the nearest are " + below + " and " + std::to_string(*above);
  }
  return "; " + key.substr(key.rfind('.') + 1) + " can be " + AnyOf(divisors);
}

void ExpectMultiple(const Named& number, const Named& divisor, Report& report) {
  if (!report.Good({number.key, divisor.key}) || divisor.value < 1) return;
  if (number.value % divisor.value == 0) return;
  const bool blame_number = report.Later(number.key, divisor.key) == number.key;
  const auto& [key, value] = blame_number ? number : divisor;
  const auto& [other_key, other] = blame_number ? divisor : number;
  const std::string relation = blame_number ? "expected a multiple of " : "expected a divisor of ";
  report.Add(key, relation + other_key + " = " + std::to_string(other) + ", got " +
                      std::to_string(value) + (blame_number ? "" : DivisorHint(key, other, value)));
}

void CheckConfig(const Config& config, Report& report) {
  CheckCluster(config, report);
  CheckPlacement(config, report);
  CheckModules(config, report);
  CheckGraph(config, report);
  CheckEdges(config, report);
  CheckRun(config, report);
  CheckSchedule(config, report);
}

namespace {

/// Limits of the search for a number of ranks. A hint with a larger number would not help.
constexpr std::int64_t kMostTimes = 8;
constexpr std::int64_t kMostRanks = 1 << 16;

/// Returns a layout of `module` on `ranks` ranks with its dp, and with the largest tp that its
/// sizes allow.
std::optional<Layout> LayoutOn(const ModuleConfig& module, int ranks) {
  Layout layout{.dp = module.layout.dp};
  const int rest = ranks / layout.dp;
  const auto layers = module.model->split_layers();
  for (int tp = rest; tp >= 1; --tp) {
    const bool fits = rest % tp == 0 && module.model->AllowsTp(tp);
    if (!fits || (layers && rest / tp > layers->number)) continue;
    layout.tp = tp;
    layout.pp = rest / tp;
    return layout;
  }
  return std::nullopt;
}

}  // namespace

static std::vector<int> Ascending(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  return ranks;
}

std::vector<int> SharedRanks(const ModuleConfig& a, const ModuleConfig& b) {
  std::vector<int> shared;
  std::ranges::set_intersection(Ascending(a.ranks), Ascending(b.ranks), std::back_inserter(shared));
  return shared;
}

bool HaveSameRanks(const ModuleConfig& a, const ModuleConfig& b) {
  return !a.ranks.empty() && Ascending(a.ranks) == Ascending(b.ranks);
}

bool MayColocate(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig* const from = config.Find(edge.from);
  return from != nullptr && !from->inline_in &&
         std::ranges::count(config.edges, edge.from, &EdgeConfig::from) == 1 &&
         std::ranges::count(config.edges, edge.from, &EdgeConfig::to) == 0;
}

std::string ColocatingHint(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig& from = *config.Find(edge.from);
  const ModuleConfig& to = *config.Find(edge.to);
  const std::int64_t least = std::lcm<std::int64_t>(from.layout.dp, to.layout.dp);
  const std::string hint = "dp " + std::to_string(from.layout.dp) + " and dp " +
                           std::to_string(to.layout.dp) + " on the same ranks need a multiple of " +
                           std::to_string(least) + " ranks";
  const std::int64_t given = std::max(std::ssize(from.ranks), std::ssize(to.ranks));
  const std::int64_t first_ranks = std::max<std::int64_t>(1, (given + least - 1) / least) * least;
  const std::int64_t last_ranks = std::min(first_ranks + (kMostTimes - 1) * least, kMostRanks);
  for (std::int64_t ranks = first_ranks; ranks <= last_ranks; ranks += least) {
    const auto first = LayoutOn(from, static_cast<int>(ranks));
    const auto second = LayoutOn(to, static_cast<int>(ranks));
    if (!first || !second) continue;
    return hint + ": e.g. " + std::to_string(ranks) + " ranks, " + from.name + " " +
           SizesText(*first, " ") + ", " + to.name + " " + SizesText(*second, " ");
  }
  return hint;
}

}  // namespace troupe
