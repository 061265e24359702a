#include "configs/report.hpp"

#include <algorithm>

#include "configs/schema.hpp"
#include "layout/text.hpp"

namespace troupe {

std::string ToString(const Place& place) {
  if (place.line == 0 || place.argument) return place.file;
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string ToString(const ConfigError& error) { return ToString(error.place) + ": " + error.text; }

static std::vector<ConfigError> Sorted(std::vector<ConfigError> errors) {
  std::ranges::sort(errors);
  errors.erase(std::unique(errors.begin(), errors.end()), errors.end());
  return errors;
}

ConfigErrors::ConfigErrors(std::vector<ConfigError> errors)
    : std::runtime_error(
          Listed(Sorted(errors), "\n", [](const ConfigError& error) { return ToString(error); })),
      errors_(Sorted(std::move(errors))) {}

Place Report::PlaceOf(const std::string& key) const {
  std::string_view known = key;
  while (!known.empty() && !places_.contains(std::string(known))) known = ParentOf(known);
  return known.empty() ? Place{file_} : places_.at(std::string(known));
}

int Report::LayerOf(const std::string& key) const {
  const Place place = PlaceOf(key);
  return place.argument ? 2 : place.file == file_ ? 1 : 0;
}

const std::string& Report::Later(const std::string& first, const std::string& second) const {
  return LayerOf(second) > LayerOf(first) ? second : first;
}

void Report::AddAt(const std::string& key, const Place& place, const std::string& text) {
  if (!guessed_.contains(key)) bad_.insert(key);
  errors_.push_back({place, key + ": " + text});
}

void Report::AddAtLater(const KeyError& first, const KeyError& second) {
  const KeyError& later = Later(first.key, second.key) == first.key ? first : second;
  Add(later.key, later.text);
}

void Report::Expect(bool holds, std::initializer_list<std::string> keys, const std::string& text) {
  if (!holds && Good(keys)) Add(*keys.begin(), text);
}

bool Report::Good(std::initializer_list<std::string> keys) const {
  return std::ranges::none_of(keys, [this](const auto& key) { return bad_.contains(key); });
}

}  // namespace troupe
