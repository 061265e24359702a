// Reads the merged TOML document into a Config, by the schema. checks.hpp checks relations between
// keys.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/report.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The origin of a key's value.
struct Origin {
  Place place;                     ///< file empty: not written, the value is the default
  std::string value;               ///< as TOML
  std::string written = {};        ///< as the user wrote it; empty for a default
  std::vector<Replaced> replaced;  ///< values that it overrode, oldest first
};

/// By dotted key: "modules.vision.layout.dp", "edges.vision.language.credits".
using Origins = std::map<std::string, Origin>;

struct ShapingInputs;

/// Reads every correct key. Reports unknown, missing and malformed keys to `report`.
Config ReadTree(const TomlValue& tree, Report& report, Origins& origins, ShapingInputs& inputs);

}  // namespace troupe
