// The rows of a configuration, for the verbs of `troupe data`.
#pragma once

#include <memory>

#include "app/handed_config.hpp"
#include "configs/config.hpp"
#include "data/row_source.hpp"

namespace troupe {

struct OpenedRows {
  Config config;
  std::shared_ptr<RowSource> source;
};

/// Opens them as a run does. Throws LaunchError for a configuration that reads no data, and DataError.
OpenedRows OpenRows(const ConfigArguments& arguments);

}  // namespace troupe
