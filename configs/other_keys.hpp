// What other programs call our keys and tables: Megatron-LM, Hugging Face, torchtitan, and habit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/schema.hpp"

namespace troupe {

/// A key of ours that somebody may have meant; without a key, a table.
struct MeantKey {
  std::string_view table;  ///< TableSpec::path
  std::string_view key;    ///< empty: the table itself
  friend bool operator==(const MeantKey&, const MeantKey&) = default;
};

/// `word` in lower case, with _ for -.
std::string FoldedKey(std::string_view word);

/// Ours for `word`, most likely first; empty when no other program that we know has it.
std::vector<MeantKey> MeantBy(std::string_view word);

/// How the value of `word` becomes that of ours; empty where it stays as it is, or is unknown.
std::string_view AdviceOn(std::string_view word);

/// "learning_rate (in [optimizer])", "[modules.NAME]"; in its own table `"learning_rate"`.
std::string Described(const MeantKey& meant, std::string_view table);

}  // namespace troupe
