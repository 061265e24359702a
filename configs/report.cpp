#include "configs/report.hpp"

#include <algorithm>

#include "configs/schema.hpp"

namespace troupe {

Place Report::PlaceOf(const std::string& key) const {
  std::string_view known = key;
  while (!known.empty() && !places_.contains(std::string(known))) known = ParentOf(known);
  return known.empty() ? Place{file_, 0, 0} : places_.at(std::string(known));
}

int Report::LayerOf(const std::string& key) const {
  const Place place = PlaceOf(key);
  return place.argument ? 2 : place.file == file_ ? 1 : 0;
}

const std::string& Report::Later(const std::string& first, const std::string& second) const {
  return LayerOf(second) > LayerOf(first) ? second : first;
}

void Report::Add(const std::string& key, const std::string& text) {
  AddAt(key, PlaceOf(key), text);
}

void Report::AddAt(const std::string& key, const Place& place, const std::string& text) {
  if (!guessed_.contains(key)) bad_.insert(key);
  errors_.push_back({place.file, place.line, place.column, key + ": " + text});
}

bool Report::Good(std::initializer_list<std::string> keys) const {
  return std::ranges::none_of(keys, [this](const auto& key) { return bad_.contains(key); });
}

}  // namespace troupe
