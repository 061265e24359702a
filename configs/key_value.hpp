// One key's value between TOML and its field: read, checked on its own, printed.
#pragma once

#include <optional>
#include <string>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Where and why a value is refused: `expected ..., got ...`.
struct Refusal {
  Place place;
  std::string text;
};

/// The word of a key of words that `given` may stand for.
struct WordMeant {
  std::string word;       ///< empty: none comes near
  bool supported = true;  ///< false: `word` is only the nearest there is
};
WordMeant MeantWord(const KeySpec& key, const std::string& given);

/// Puts `value` into the field behind `key`; the field keeps its old value when it is refused.
std::optional<Refusal> ReadValue(const KeySpec& key, const TomlValue& value, const Target& target);

/// The field behind `key` as TOML; empty when the field is optional and not set, or when the key
/// holds nothing (`extends`, what this build does not have, nodes that are no mere count).
std::string PrintValue(const KeySpec& key, const Target& target);

/// As TOML, what holds where nobody writes the key; empty when nothing does.
std::string PrintDefault(const KeySpec& key);

}  // namespace troupe
