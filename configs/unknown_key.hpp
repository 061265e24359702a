// Writes the error for a key that is not legal in its table.
#pragma once

#include <string>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

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
