// Suggests the key or word that a user probably meant: the nearest known one, or our name for the
// key of another program (Megatron-LM, Hugging Face, torchtitan, and common habit).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn `a`
/// into `b`.
int EditDistance(std::string_view a, std::string_view b);

/// Returns the word of `known` nearest to `word`, the first if equal. Empty if all are too far
/// (more than two edits, or more than a third of the word).
std::string Nearest(std::string_view word, std::span<const std::string> known);

/// Returns "a", "b" or "c".
std::string Alternatives(std::span<const std::string> words);

/// Returns the words of these kinds as Alternatives.
std::string KindsText(KindSet kinds);

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

/// The error for a key that is not legal in its table.
struct UnknownKey {
  std::string text;
  bool lists_names = false;  ///< the text lists every name that is legal there
};

/// Suggests the table that the key belongs to, our name for another program's key, the nearest
/// legal name, or lists all legal names. `kinds`: the kind of the enclosing module. `listed_at`:
/// the key whose error already has that list, "" if none has.
UnknownKey AnswerUnknown(const TomlEntry& entry, std::string_view table, KindSet kinds,
                         const std::string& listed_at);

}  // namespace troupe
