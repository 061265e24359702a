// Notation for the parts of the key table; configs/schema.hpp has the whole. Each source has one
// part. kinds/key.hpp describes an entry.
#pragma once

#include <concepts>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <vector>

#include "configs/schema.hpp"

namespace troupe {

struct PlacementKey {};
inline constexpr PlacementKey kPlacement;  ///< KeySpec::placement

/// Returns the optimizer's values of a module, else of an edge's projector.
inline OptimizerOverride& OverrideIn(const Target& target) {
  return target.module != nullptr ? target.module->optimizer : target.edge->through->optimizer;
}

/// Adds the keys of OptimizerOverride.
void AddOverrideKeys(std::vector<KeySpec>& keys, std::string_view table);

/// Returns the struct that the keys of a table fill.
template <typename Struct>
Struct& In(const Target& target) {
  // clang-format off
  if constexpr (std::same_as<Struct, ClusterNode>) return *target.node;
  else if constexpr (std::same_as<Struct, DataSource>) return *target.source;
  else if constexpr (std::same_as<Struct, TopologyConfig>) return target.config->cluster.topology;
  else if constexpr (std::same_as<Struct, ModuleConfig>) return *target.module;
  else if constexpr (std::same_as<Struct, Layout>) return target.module->layout;
  else if constexpr (std::same_as<Struct, InputConfig>) return *target.module->input;
  else if constexpr (std::same_as<Struct, MoeConfig>) return target.module->moe;
  else if constexpr (std::same_as<Struct, LoraConfig>) return *target.module->lora;
  else if constexpr (std::same_as<Struct, OptimizerOverride>) return OverrideIn(target);
  else if constexpr (std::same_as<Struct, EdgeConfig>) return *target.edge;
  else if constexpr (std::same_as<Struct, ProjectorConfig>) return *target.edge->through;
  else {
    Config& c = *target.config;
    return std::get<Struct&>(std::tie(c.run, c.cluster, c.transport, c.schedule, c.optimizer,
                                      c.data, c.trace, c.checkpoint, c.model, c.log));
  }
  // clang-format on
}

/// An entry of the table.
class KeyEntry : public KeySpec {
 public:
  template <typename... Parts>
  KeyEntry(std::string_view key, Parts... parts) {
    name = key;
    (Set(std::move(parts)), ...);
  }

 private:
  template <typename Struct, typename Field>
  void Set(Field Struct::*field) {
    type = TypeOf<Field>();
    slot = [field](const Target& target) -> Slot { return &(In<Struct>(target).*field); };
  }
  void Set(Slot (*of)(const Target&)) { slot = of; }
  void Set(PlacementKey) { placement = true; }
  void Set(KindSet part) { kinds = part; }
  template <typename Part>
  void Set(Part part) {
    Put(*this, std::move(part));
  }
};

/// Properties that the keys of a table share unless an entry overrides them.
struct Shared {
  std::string_view table;
  KindSet kinds = kEveryKind;
  KeyRole role = KeyRole::kRun;
};

void Add(std::vector<KeySpec>& keys, const Shared& shared, std::initializer_list<KeyEntry> entries);

std::vector<KeySpec> RunKeys();      ///< top level, run, schedule, optimizer, data, trace, log
std::vector<KeySpec> ClusterKeys();  ///< cluster, its nodes, transport, checkpoint
std::vector<KeySpec> ModuleKeys();   ///< of every module, its layout, input and optimizer
std::vector<KeySpec> EdgeKeys();     ///< of edges, their projectors and their optimizer

}  // namespace troupe
