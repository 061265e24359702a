#include "configs/colocating.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "configs/checks.hpp"
#include "configs/toml_value.hpp"

namespace troupe {
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

bool HaveSameRanks(const ModuleConfig& a, const ModuleConfig& b) {
  auto in_a = a.ranks;
  auto in_b = b.ranks;
  std::ranges::sort(in_a);
  std::ranges::sort(in_b);
  return !in_a.empty() && in_a == in_b;
}

bool IsColocatedEncoder(const Config& config, const ModuleConfig& module) {
  return WhyNotColocated(config, module).empty();
}

std::string WhyNotColocated(const Config& config, const ModuleConfig& module) {
  std::string feeds;
  for (const EdgeConfig& edge : config.edges) {
    const ModuleConfig* to = config.Find(edge.to);
    if (edge.from != module.name || to == nullptr || to == &module) continue;
    if (!module.inline_in && HaveSameRanks(module, *to)) return "";
    feeds = edge.to;
  }
  if (feeds.empty()) return "feeds no module";
  if (module.inline_in) return "is inline in " + Quoted(*module.inline_in) + " and runs with it";
  return "shares no ranks with " + Quoted(feeds) + ", which it feeds";
}

bool MayColocate(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig* const from = config.Find(edge.from);
  return from != nullptr && !from->inline_in &&
         std::ranges::count(config.edges, edge.from, &EdgeConfig::from) == 1 &&
         std::ranges::count(config.edges, edge.from, &EdgeConfig::to) == 0;
}

bool FitsOn(std::int64_t num_ranks, const ModuleConfig& a, const ModuleConfig& b) {
  return num_ranks % a.layout.dp == 0 && num_ranks % b.layout.dp == 0;
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
