#pragma once

#include <string>
#include <vector>

namespace troupe {

/// The arguments of every verb that reads a configuration.
struct ConfigArguments {
  std::string path;
  std::vector<std::string> overrides;  ///< "key=value"
};

}  // namespace troupe
