#include <algorithm>
#include <string>
#include <vector>

#include "configs/checks.hpp"
#include "configs/schema.hpp"
#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {

static void CheckEnds(const Config& config, const EdgeConfig& edge, Report& report) {
  for (const auto& [end, name] : {std::pair("from", edge.from), {"to", edge.to}}) {
    if (config.Find(name) != nullptr || !report.Good({"modules"})) continue;
    report.Add(KeyOf(edge, end), UnknownModule(config, name));
  }
}

static bool KnownEnds(const Config& config, const EdgeConfig& edge, const Report& report) {
  return config.Find(edge.from) != nullptr && config.Find(edge.to) != nullptr &&
         report.Good({"modules." + edge.from + ".kind", "modules." + edge.to + ".kind"});
}

namespace {

/// Searches the modules depth first. Reports each edge that closes a cycle, with the cycle's path.
class CycleFinder {
 public:
  CycleFinder(const Config& config, Report& report) : config_(config), report_(report) {}

  void Visit(const std::string& module) {
    if (std::ranges::count(done_, module) > 0) return;
    path_.push_back(module);
    for (const EdgeConfig& edge : config_.edges) {
      if (edge.from == module) Follow(edge);
    }
    path_.pop_back();
    done_.push_back(module);
  }

 private:
  void Follow(const EdgeConfig& edge) {
    const auto first = std::ranges::find(path_, edge.to);
    if (first == path_.end()) return Visit(edge.to);
    std::string text = "cycle ";
    for (auto module = first; module != path_.end(); ++module) text += *module + " -> ";
    report_.Add(KeyOf(edge), text + edge.to + ", expected edges that lead to a sink");
  }

  const Config& config_;
  Report& report_;
  std::vector<std::string> path_;
  std::vector<std::string> done_;
};

}  // namespace

/// The kind that receives rows accepts or refuses them.
static void CheckKinds(const Config& config, const EdgeConfig& edge, Report& report) {
  const ModuleConfig& to = *config.Find(edge.to);
  const std::string why = to.model->WhyNotFrom(*config.Find(edge.from)->model);
  if (why.empty()) return;
  report.Add(KeyOf(edge, to.model->takes_rows() ? "from" : "to"),
             "\"" + to.name + "\" is a \"" + std::string(to.model.kind().word) +
                 "\" module, which " + why);
}

static void CheckFeedsSomething(const Config& config, Report& report) {
  for (const auto& module : config.modules) {
    const bool encoder = module.model->field() != nullptr && report.Good({KeyOf(module, "kind")});
    const bool feeds = std::ranges::count(config.edges, module.name, &EdgeConfig::from) > 0;
    if (!encoder || feeds) continue;
    report.Add("modules." + module.name,
               "feeds no module, expected an [[edges]] from it to a module that takes rows");
  }
}

static void CheckNotMixed(const Config& config, Report& report) {
  const ModuleConfig* const real = FindComputing(config, report);
  if (real == nullptr) return;
  std::vector<std::string> expected;
  for (const ModuleKind* kind : Kinds()) {
    if (kind->make()->computes()) expected.push_back(Quoted(kind->word));
  }
  for (const auto& module : config.modules) {
    report.Expect(module.model->computes(), {KeyOf(module, "kind")},
                  "\"synthetic\" runs only with synthetic modules, and \"" + real->name +
                      "\" is not one; expected " + ListedWithOr(expected));
  }
}

void CheckGraph(const Config& config, Report& report) {
  if (config.modules.empty() && report.Good({"modules"})) {
    report.Add("modules", "missing, expected at least one [modules.NAME]");
  }
  CheckNotMixed(config, report);
  for (const auto& edge : config.edges) {
    CheckEnds(config, edge, report);
    if (KnownEnds(config, edge, report)) CheckKinds(config, edge, report);
  }
  CycleFinder cycles(config, report);
  for (const auto& module : config.modules) cycles.Visit(module.name);
  CheckFeedsSomething(config, report);
}

}  // namespace troupe
