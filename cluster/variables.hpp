// The environment as data: read once by main and passed on.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

namespace troupe {

/// Environment variables by name.
using Variables = std::map<std::string, std::string>;

/// The settings of the launcher or the command line are incomplete or contradictory. The text names
/// every source and its value.
struct LaunchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One of two variables that belong together is set, the other one is not.
struct HalfSet : LaunchError {
  HalfSet(const std::string& set, const std::string& value, const std::string& missing)
      : LaunchError(set + " is " + value + ", but " + missing +
                    " is missing; expected both or none") {}
};

/// The value of `name`; null if it is unset or empty.
inline const std::string* FindVariable(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace troupe
