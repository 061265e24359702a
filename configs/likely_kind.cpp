#include "configs/likely_kind.hpp"

#include <algorithm>

#include "configs/key_value.hpp"
#include "configs/other_keys.hpp"
#include "configs/schema.hpp"

namespace troupe {

/// The kinds that have this key, by our name or that of another program.
static KindSet KindsOf(const std::string& name) {
  KindSet kinds = 0;
  const auto add = [&](std::string_view ours) {
    for (const auto& key : Keys()) {
      if (key.table == "modules.*" && key.name == ours) kinds |= key.kinds;
    }
  };
  add(name);
  for (const MeantKey& meant : MeantBy(name)) {
    if (meant.table == "modules.*" && !meant.key.empty()) add(meant.key);
  }
  return kinds;
}

std::optional<ModuleKind> LikelyKind(const TomlValue& module) {
  const TomlEntry* kind = module.Find("kind");
  if (kind != nullptr && kind->value.Is(TomlValue::Kind::kString)) {
    const auto words = KindWords();
    const std::string meant = MeantWord(*FindKey("modules.*", "kind"), kind->value.string).word;
    const auto found = std::ranges::find(words, meant);
    if (found != words.end()) return static_cast<ModuleKind>(found - words.begin());
  }
  KindSet possible = kEveryKind;
  for (const auto& entry : module.entries) {
    if (const KindSet kinds = KindsOf(entry.key); kinds != 0) possible &= kinds;
  }
  for (const ModuleKind one : {ModuleKind::kVit, ModuleKind::kLlama, ModuleKind::kSynthetic}) {
    if (possible == Only(one)) return one;
  }
  return std::nullopt;
}

}  // namespace troupe
