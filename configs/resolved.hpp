// The values of a Config in the order in which they are written, with their dotted keys.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/schema.hpp"

namespace troupe {

struct ResolvedKey {
  std::string name;
  std::string value;  ///< as TOML
  const KeySpec* spec = nullptr;
};

struct ResolvedTable {
  const TableSpec* spec = nullptr;
  std::string dotted;  ///< "modules.vision.layout"
  std::vector<ResolvedKey> keys;
};

/// Returns every table and key that has a value in this configuration.
std::vector<ResolvedTable> ResolvedTables(const Config& config);

}  // namespace troupe
