// Converts the value of one key between TOML and its field: reads it, checks it, prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Describes a legal value: `a whole number (pixels) of at least 1`.
std::string Expected(const KeySpec& key);

/// Returns `text` without blanks at its ends.
std::string_view Trimmed(std::string_view text);

/// Returns the ranks in `text` ("4-7", "0-2,5") in the order written, or the reason why it is not a
/// rank list. Keeps repetitions: the caller checks them. RanksText (layout/text.hpp) writes them.
std::variant<std::vector<int>, std::string> ParseRanks(std::string_view text);

/// The word of a key of type kWord that `given` probably means.
struct WordMeant {
  std::string word;       ///< empty: no word is near
  bool supported = true;  ///< false: `word` is not the same, only the nearest
};
WordMeant MeantWord(const KeySpec& key, const std::string& given);

/// Stores `value` in the field of `key`. A refused value leaves the field unchanged; the result is
/// its place and the reason, `expected ..., got ...`.
std::optional<ConfigError> ReadValue(const KeySpec& key, const TomlValue& value,
                                     const Target& target);

/// Returns the field of `key` as TOML. Empty if the field is optional and not set, or if the key
/// stores nothing (`extends`, a key that this build does not support, nodes that are not a count).
std::string PrintValue(const KeySpec& key, const Target& target);

/// Returns the default of `key` as TOML; empty if it has none.
std::string PrintDefault(const KeySpec& key);

}  // namespace troupe
