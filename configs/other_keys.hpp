// Names of our keys and tables in other programs: Megatron-LM, Hugging Face, torchtitan, and common
// habit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/schema.hpp"

namespace troupe {

/// A key of ours that the user may have meant; without a key, a table.
struct MeantKey {
  std::string_view table;  ///< TableSpec::path
  std::string_view key;    ///< empty: the table itself
  friend bool operator==(const MeantKey&, const MeantKey&) = default;
};

/// Returns `word` in lower case, with _ for -.
std::string FoldedKey(std::string_view word);

/// Returns our keys for `word`, most likely first; empty if no known program has the word.
std::vector<MeantKey> MeantBy(std::string_view word);

/// Returns how to convert the value of `word` to ours; empty if it needs no conversion, or the word
/// is unknown.
std::string_view AdviceOn(std::string_view word);

/// Returns "learning_rate (in [optimizer])" or "[modules.NAME]"; within `table` just
/// `"learning_rate"`.
std::string Described(const MeantKey& meant, std::string_view table);

}  // namespace troupe
