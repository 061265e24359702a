#include <variant>

#include "configs/schema_keys.hpp"

namespace troupe {

std::vector<KeySpec> KindKeys() {
  std::vector<KeySpec> keys;
  for (const ModuleKind* kind : Kinds()) {
    for (const ModelKey& own : kind->keys()) {
      KeySpec& key = keys.emplace_back();
      static_cast<KeyText&>(key) = own;
      key.table = "modules.*";
      key.kinds = Only(*kind);
      key.slot = [slot = own.slot](const Target& target) {
        return std::visit([](auto* field) -> Slot { return field; }, slot(*target.module->model));
      };
    }
  }
  return keys;
}

}  // namespace troupe
