// The environment as data: read once by main, passed to whoever decides by it.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

namespace troupe {

/// Environment variables by name.
using Variables = std::map<std::string, std::string>;

/// What the launcher or the command line says cannot be followed. The text names every source with
/// what it says.
struct LaunchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The value of `name`; null when it is not set, or set to nothing.
inline const std::string* FindVariable(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace troupe
