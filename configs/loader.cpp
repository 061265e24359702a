#include "configs/loader.hpp"

#include <stdexcept>
#include <utility>

#include "configs/checks.hpp"
#include "configs/merge.hpp"
#include "configs/nodes.hpp"
#include "configs/resolved.hpp"
#include "configs/sources.hpp"
#include "configs/spelling.hpp"

namespace troupe {

/// The values as they hold, those that nobody wrote included.
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
  loaded.config = ReadTree(tree, report, loaded.origins);
  FillNodes(loaded.config.cluster);
  SetChunks(loaded.config);
  ReadScheduleFile(loaded.config.schedule, report);
  CheckConfig(loaded.config, report);
  ThrowIfAny(report.errors());
  loaded.origins = CompleteOrigins(loaded.config, std::move(loaded.origins));
  loaded.resolved_toml = ResolvedToml(loaded.config);
  return loaded;
}

static std::string ExplainOne(const std::string& key, const Origin& origin) {
  std::string text = key + " = " + origin.value + "\n  ";
  text += origin.place.file.empty() ? "default" : ToString(origin.place);
  for (auto old = origin.replaced.rbegin(); old != origin.replaced.rend(); ++old) {
    text += "\n  overrides " + ToString(old->place) + ", which said " + old->text;
  }
  return text + "\n";
}

std::string Explain(const LoadedConfig& loaded, const std::string& key) {
  std::string text;
  std::vector<std::string> known;
  for (const auto& [name, origin] : loaded.origins) {
    known.push_back(name);
    if (name == key || name.starts_with(key + ".")) text += ExplainOne(name, origin);
  }
  if (!text.empty()) return text;
  const std::string nearest = Nearest(key, known);
  throw std::invalid_argument(key + ": unknown key" +
                              (nearest.empty() ? ", expected one of the resolved file"
                                               : "; did you mean " + nearest + "?"));
}

}  // namespace troupe
