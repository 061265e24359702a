// The errors of a configuration: all of them at once, each with its place.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// One error. The text is one line: subject first, then the expected value, then the actual one.
struct ConfigError {
  std::string file;
  int line = 0;  ///< from 1; 0 for the file as a whole
  int column = 0;
  std::string text;
  friend auto operator<=>(const ConfigError&, const ConfigError&) = default;
};

/// "file:line:column: text", or "file: text" when the line is 0.
std::string ToString(const ConfigError& error);

/// All errors of a configuration. what() has one line for each.
class ConfigErrors : public std::runtime_error {
 public:
  /// Sorts by place and drops repetitions.
  explicit ConfigErrors(std::vector<ConfigError> errors);
  const std::vector<ConfigError>& errors() const { return errors_; }

 private:
  std::vector<ConfigError> errors_;
};

}  // namespace troupe
