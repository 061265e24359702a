#include <algorithm>
#include <stdexcept>

#include "configs/checks.hpp"
#include "configs/key_value.hpp"
#include "configs/loader.hpp"
#include "configs/schema.hpp"
#include "configs/suggest.hpp"

namespace troupe {

namespace {

/// A key that this configuration could have, whether or not it is set.
struct PossibleKey {
  std::string dotted;
  const KeySpec* spec = nullptr;
  const ModuleConfig* module = nullptr;  ///< null if the key is not of a module
};

std::vector<PossibleKey> PossibleKeys(Config& config) {
  std::vector<PossibleKey> all;
  for (const auto& key : Keys()) {
    for (const auto& [table, target] : InstancesOf(config, key.table)) {
      all.push_back({DottedKey(table, key.name), &key, target.module});
    }
  }
  return all;
}

bool IsOfKind(const PossibleKey& key) {
  return key.module == nullptr || (key.spec->kinds & Only(key.module->model.kind())) != 0;
}

std::string ExplainOne(const std::string& key, const Origin& origin) {
  std::string text = key + " = " + origin.value + "\n  ";
  text += origin.place.file.empty() ? "default" : ToString(origin.place);
  for (auto old = origin.replaced.rbegin(); old != origin.replaced.rend(); ++old) {
    text += "\n  overrides " + ToString(old->place) + ", which said " + old->text;
  }
  return text + "\n";
}

/// Returns the reason why the key has no value, and its legal values.
std::string ExplainUnset(const PossibleKey& key) {
  std::string text = key.dotted + " is not set; ";
  if (!IsOfKind(key)) {
    text += "it is of modules of kind " + KindsText(key.spec->kinds) + ", and this one's is " +
            Quoted(key.module->model.kind().word);
  } else if (key.spec->placement && key.module != nullptr && key.module->inline_in) {
    text += "the module runs inline in " + Quoted(*key.module->inline_in) + " and has its";
  } else {
    const std::string value = PrintDefault(*key.spec);
    text += "default: " + (!key.spec->otherwise.empty() ? std::string(key.spec->otherwise)
                           : value.empty()              ? std::string("none")
                                                        : value);
  }
  return text + "\n  expected " + Expected(*key.spec) + "\n  " + std::string(key.spec->meaning) +
         "\n";
}

}  // namespace

std::string Explain(const LoadedConfig& loaded, const std::string& key) {
  std::string text;
  std::vector<std::string> known;
  const auto asked = [&](const std::string& name) {
    return name == key || name.starts_with(key + ".");
  };
  for (const auto& [name, origin] : loaded.origins) {
    known.push_back(name);
    if (asked(name)) text += ExplainOne(name, origin);
  }
  Config config = loaded.config;
  const std::vector<PossibleKey> possible_keys = PossibleKeys(config);
  const auto exact = std::ranges::find(possible_keys, key, &PossibleKey::dotted);
  if (!text.empty()) {
    // For a table only the values are printed; for one key also its meaning.
    if (exact != possible_keys.end()) text += "  " + std::string(exact->spec->meaning) + "\n";
    return text;
  }
  std::string of_others;  // keys that only modules of another kind have
  for (const PossibleKey& possible : possible_keys) {
    if (IsOfKind(possible)) known.push_back(possible.dotted);
    if (!asked(possible.dotted)) continue;
    (IsOfKind(possible) ? text : of_others) += ExplainUnset(possible);
  }
  if (text.empty()) text = of_others;
  if (!text.empty()) return text;
  const auto whole =
      std::ranges::find_if(known, [&](const auto& name) { return name.ends_with("." + key); });
  const std::string nearest = whole != known.end() ? *whole : Nearest(key, known);
  throw std::invalid_argument(
      key + ": unknown key" +
      (nearest.empty() ? ", docs/config.md has them all" : "; did you mean " + nearest + "?"));
}

}  // namespace troupe
