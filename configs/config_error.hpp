// What is wrong with a configuration: all of it at once, each with its place.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// One mistake. The text is one line: subject first, what was expected, what came.
struct ConfigError {
  std::string file;
  int line = 0;  ///< from 1; 0 when the file as a whole is meant
  int column = 0;
  std::string text;
  friend auto operator<=>(const ConfigError&, const ConfigError&) = default;
};

/// "file:line:column: text", or "file: text" when the line is 0.
std::string ToString(const ConfigError& error);

/// All mistakes of a configuration; what() is one line for each.
class ConfigErrors : public std::runtime_error {
 public:
  /// Sorts by place and drops repetitions.
  explicit ConfigErrors(std::vector<ConfigError> errors);
  const std::vector<ConfigError>& errors() const { return errors_; }

 private:
  std::vector<ConfigError> errors_;
};

}  // namespace troupe
