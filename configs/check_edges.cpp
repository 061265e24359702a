#include <algorithm>

#include "configs/checks.hpp"
#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {

static bool Joined(const Config& config, const ModuleConfig& a, const ModuleConfig& b) {
  return config.FindEdge(a.name, b.name) != nullptr || config.FindEdge(b.name, a.name) != nullptr;
}

/// Returns whether the projector has two linears with a width between them.
static bool CheckHidden(const ProjectorConfig& projector, const std::string& key, Report& report) {
  if (!report.Good({key})) return false;
  const bool two = projector.kind != ProjectorKind::kLinear;
  if (two == (projector.hidden > 0)) return two;
  if (two) {
    report.Add(key, report.Knows(key) ? "expected at least 1, got 0" : "missing, expected a width");
  } else {
    report.Add(key, "expected none, since kind = \"linear\" is one linear layer");
  }
  return false;
}

/// The rows of a source leave joined or not, the same on all of its edges.
static void CheckJoinedRows(const Config& config, const EdgeConfig& edge, Report& report) {
  if (edge.through->kind != ProjectorKind::kPixelShuffle) return;
  const std::string key = KeyOf(edge, "through.kind");
  const ModuleConfig& from = *config.Find(edge.from);
  if (!Model(from.model)->JoinRows(2)) {
    return report.Add(key, "expected a projector without \"pixel_shuffle\", since the rows of \"" +
                               from.name + "\" are no patches of images");
  }
  for (const EdgeConfig& other : config.edges) {
    const bool joins = other.through && other.through->kind == ProjectorKind::kPixelShuffle;
    if (other.from != edge.from || joins) continue;
    report.Add(key, "expected the same kind on every edge of \"" + from.name +
                        "\", whose rows leave joined; " + KeyOf(other) + " has another");
  }
}

static void CheckProjector(const Config& config, const EdgeConfig& edge, Report& report) {
  const ModuleConfig& from = *config.Find(edge.from);
  const ModuleConfig& to = *config.Find(edge.to);
  const std::string key = KeyOf(edge, "through");
  if (edge.through) {
    if (!report.Good({key, key + ".kind"})) return;
    const ModuleConfig& end = edge.through->on == ProjectorEnd::kFrom ? from : to;
    CheckOwnRates(edge.through->optimizer, end.optimizer, key + ".optimizer", config, report);
    CheckJoinedRows(config, edge, report);
    if (!CheckHidden(*edge.through, key + ".hidden", report)) return;
    const ModuleConfig& host = HostOf(config, end);
    if (!report.Good({key + ".on"})) return;
    return ExpectMultiple({key + ".hidden", edge.through->hidden},
                          {KeyOf(host, "layout.tp"), host.layout.tp}, report);
  }
  if (from.model->tile_side() > 0) {
    return report.Add(key, "missing, expected a projector: \"" + from.name +
                               "\" cuts images into tiles, and the newline row at the end of "
                               "their lines belongs to it");
  }
  if (!report.Good({key, KeyOf(from, "hidden"), KeyOf(to, "hidden")})) return;
  if (from.model->row_width() == to.model->row_width()) return;
  report.Add(key, "missing, expected a projector from hidden " +
                      std::to_string(from.model->row_width()) + " of \"" + from.name +
                      "\" to hidden " + std::to_string(to.model->row_width()) + " of \"" + to.name +
                      "\"");
}

/// A colocated encoder runs as a phase of its destination, so it can have no other neighbour.
static void CheckColocated(const Config& config, const EdgeConfig& edge, Report& report) {
  const ModuleConfig& from = *config.Find(edge.from);
  const auto out = std::ranges::count(config.edges, from.name, &EdgeConfig::from);
  const auto in = std::ranges::count(config.edges, from.name, &EdgeConfig::to);
  const std::string subject = "\"" + from.name + "\" is " +
                              (from.inline_in ? "inline in" : "colocated with") + " \"" + edge.to +
                              "\" and ";
  if (out > 1) {
    report.Add(KeyOf(edge, "from"), subject + "feeds " + std::to_string(out) +
                                        " modules; expected it to feed that one only");
  } else if (in > 0) {
    report.Add(KeyOf(edge, "from"), subject + "is fed by another module; expected a source");
  }
}

/// Returns whether the ends of `edge`, which share some ranks, were probably meant to share all:
/// the job is too small for both on separate ranks, they share at least half of the smaller set,
/// and their layouts are correct.
static bool MeantToShare(const Config& config, const EdgeConfig& edge, std::ptrdiff_t num_shared,
                         const Report& report) {
  const ModuleConfig& from = *config.Find(edge.from);
  const ModuleConfig& to = *config.Find(edge.to);
  const auto num_from = std::ssize(from.ranks);
  const auto num_to = std::ssize(to.ranks);
  // Unused ranks are reported with cluster.ranks.
  if (!report.Good({"cluster.ranks"}) || num_from + num_to <= config.cluster.ranks) return false;
  return 2 * num_shared >= std::min(num_from, num_to) && RanksOf(from.layout) == num_from &&
         RanksOf(to.layout) == num_to && MayColocate(config, edge);
}

static void CheckEdgePlacement(const Config& config, const EdgeConfig& edge, Report& report) {
  const ModuleConfig& from = *config.Find(edge.from);
  const ModuleConfig& to = *config.Find(edge.to);
  if (!report.Good({KeyOf(from, "ranks"), KeyOf(to, "ranks"), KeyOf(from, "inline_in")})) return;
  const auto shared = SharedRanks(from, to);
  if (&from == &to) return;
  if (from.inline_in == edge.to || HaveSameRanks(from, to)) {
    CheckColocated(config, edge, report);
  } else if (!shared.empty()) {
    const bool hint = MeantToShare(config, edge, std::ssize(shared), report);
    report.Add(KeyOf(from, "ranks"), "shares only rank " + RanksText(shared) + " with " +
                                         KeyOf(to, "ranks") + " = \"" + RanksText(to.ranks) +
                                         "\", expected all of them (colocated) or none (disjoint)" +
                                         (hint ? "; " + ColocatingHint(config, edge) : ""));
  }
}

/// Returns whether a host orders the work of both modules. Colocated encoders of one destination
/// take turns. Other modules that share a rank have no order, and their collectives would deadlock.
static bool TakeTurns(const Config& config, const ModuleConfig& a, const ModuleConfig& b) {
  return std::ranges::any_of(config.modules, [&](const ModuleConfig& host) {
    return HaveSameRanks(a, host) && HaveSameRanks(b, host) && Joined(config, a, host) &&
           Joined(config, b, host);
  });
}

static void CheckStrangers(const Config& config, Report& report) {
  for (const auto& module : config.modules) {
    for (const auto& earlier : config.modules) {
      if (&earlier == &module) break;
      if (!report.Good({KeyOf(module, "ranks"), KeyOf(earlier, "ranks")})) continue;
      const auto shared = SharedRanks(earlier, module);
      if (shared.empty() || Joined(config, earlier, module) || TakeTurns(config, earlier, module))
        continue;
      report.Add(KeyOf(module, "ranks"),
                 "shares rank " + RanksText(shared) + " with " + KeyOf(earlier, "ranks") +
                     " without an edge between them, expected separate ranks");
    }
  }
}

void CheckEdges(const Config& config, Report& report) {
  for (const auto& edge : config.edges) {
    const ModuleConfig* from = config.Find(edge.from);
    const ModuleConfig* to = config.Find(edge.to);
    if (from == nullptr || to == nullptr) continue;
    if (!report.Good({KeyOf(*from, "kind"), KeyOf(*to, "kind")})) continue;
    CheckProjector(config, edge, report);
    CheckEdgePlacement(config, edge, report);
  }
  CheckStrangers(config, report);
}

}  // namespace troupe
