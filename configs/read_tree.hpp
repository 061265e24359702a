// The merged TOML document -> Config, by the schema. Relations between keys are checks.hpp's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/report.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Where a key's value comes from.
struct Origin {
  Place place;                     ///< file empty: nobody wrote it, the default holds
  std::string value;               ///< as TOML
  std::string written = {};        ///< the same as the user put it; empty for a default
  std::vector<Replaced> replaced;  ///< what it overrode, oldest first
};

/// By dotted key: "modules.vision.layout.dp", "edges.vision.language.credits".
using Origins = std::map<std::string, Origin>;

struct ShapingInputs;

/// Reads every key that is right; what is unknown, missing or malformed goes to `report`.
Config ReadTree(const TomlValue& tree, Report& report, Origins& origins, ShapingInputs& inputs);

}  // namespace troupe
