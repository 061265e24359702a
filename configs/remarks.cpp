#include "configs/remarks.hpp"

#include <algorithm>

#include "configs/checks.hpp"
#include "configs/colocating.hpp"
#include "configs/toml_value.hpp"

namespace troupe {
namespace {

/// Adds keys that only affect colocated encoders: windows of microbatches, and the state that
/// leaves a device while the other module uses it.
template <class Add>
void AddColocatedOnly(const Config& config, Add add) {
  const bool windows = std::ranges::any_of(
      config.modules, [&](const auto& module) { return IsColocatedEncoder(config, module); });
  if (config.schedule.window != 0 && !windows) {
    add("schedule.window", "has no effect: no encoder shares its ranks with a module it feeds");
  }
  for (const ModuleConfig& module : config.modules) {
    const std::string why = WhyNotColocated(config, module);
    const bool leaves = module.offload != Offload::kNone;
    if (leaves && !why.empty()) {
      add(KeyOf(module, "offload"), "has no effect: " + Quoted(module.name) + " " + why);
    }
    if (module.offload_ahead && (!leaves || !why.empty())) {
      add(KeyOf(module, "offload_ahead"),
          "has no effect: nothing of " + Quoted(module.name) + " leaves its ranks");
    }
  }
}

}  // namespace

std::vector<ConfigError> Remarks(const Config& config, const Origins& origins) {
  std::vector<ConfigError> remarks;
  const auto add = [&](const std::string& key, const std::string& text) {
    const auto origin = origins.find(key);
    const Place place = origin == origins.end() ? Place{} : origin->second.place;
    remarks.push_back({place.file, place.line, place.column, key + ": " + text});
  };
  if (config.run.tf32 && config.cluster.backend != Backend::kCuda) {
    add("run.tf32", "has no effect with cluster.backend = \"" + ToString(config.cluster.backend) +
                        "\": it is about products of float32 on a GPU");
  } else if (config.run.tf32 && config.run.precision != Precision::kFloat32) {
    const bool is_short = config.run.precision == Precision::kBFloat16;
    add("run.tf32", std::string("has no effect with run.precision = ") +
                        (is_short ? "\"bfloat16\"" : "\"float64\"") +
                        ": it is about products of float32");
  }
  AddColocatedOnly(config, add);
  return remarks;
}

}  // namespace troupe
