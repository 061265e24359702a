#include "configs/loader.hpp"

#include <utility>

#include "configs/checks.hpp"
#include "configs/merge.hpp"
#include "configs/nodes.hpp"
#include "configs/remarks.hpp"
#include "configs/resolved.hpp"
#include "configs/settle.hpp"
#include "configs/sources.hpp"

namespace troupe {

/// Returns the origins of all values, defaults included.
static Origins CompleteOrigins(const Config& config, Origins written) {
  for (const auto& table : ResolvedTables(config)) {
    for (const auto& key : table.keys) {
      const std::string dotted = table.dotted.empty() ? key.name : table.dotted + "." + key.name;
      written[dotted].value = key.value;
    }
  }
  return written;
}

static void ThrowIfAny(const std::vector<ConfigError>& errors) {
  if (!errors.empty()) throw ConfigErrors(errors);
}

LoadedConfig LoadConfig(const std::string& path, const std::vector<std::string>& overrides) {
  std::vector<ConfigError> errors;
  TomlValue tree = ReadFiles(path, errors);
  for (const auto& text : overrides) Merge(tree, ReadOverride(text, errors));
  ThrowIfAny(errors);

  Report report(path);
  LoadedConfig loaded;
  ShapingInputs inputs;
  loaded.config = ReadTree(tree, report, loaded.origins, inputs);
  FillNodes(loaded.config.cluster);
  FillDefaults(loaded.config, report);
  SetChunks(loaded.config);
  SettleBatch(loaded.config, inputs, report);
  ReadScheduleFile(loaded.config.schedule, report);
  CheckConfig(loaded.config, report);
  ThrowIfAny(report.errors());
  loaded.origins = CompleteOrigins(loaded.config, std::move(loaded.origins));
  loaded.resolved_toml = ResolvedToml(loaded.config);
  loaded.remarks = Remarks(loaded.config, loaded.origins);
  return loaded;
}

}  // namespace troupe
