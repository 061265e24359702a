// What to say about a key that does not belong where it stands.
#pragma once

#include <string>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

struct UnknownKey {
  std::string text;
  bool lists_names = false;  ///< the text has every name that may stand there
};

/// Where it would belong, what other programs mean by it, the nearest valid spelling, or what may
/// stand there. `kinds` is the kind of the module it stands in. `listed_at`: the key whose answer
/// has that list already, "" when none has.
UnknownKey AnswerUnknown(const TomlEntry& entry, std::string_view table, KindSet kinds,
                         const std::string& listed_at);

}  // namespace troupe
