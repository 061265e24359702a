#include "configs/config_error.hpp"

#include <algorithm>
#include <utility>

#include "configs/toml_value.hpp"

namespace troupe {

std::string ToString(const ConfigError& error) {
  return ToString(Place{error.file, error.line, error.column}) + ": " + error.text;
}

static std::vector<ConfigError> Sorted(std::vector<ConfigError> errors) {
  std::ranges::sort(errors);
  errors.erase(std::unique(errors.begin(), errors.end()), errors.end());
  return errors;
}

static std::string Lines(const std::vector<ConfigError>& errors) {
  std::string text;
  for (const auto& error : errors) {
    if (!text.empty()) text += '\n';
    text += ToString(error);
  }
  return text;
}

ConfigErrors::ConfigErrors(std::vector<ConfigError> errors)
    : std::runtime_error(Lines(Sorted(errors))), errors_(Sorted(std::move(errors))) {}

}  // namespace troupe
