// How the parts of the key table are written, and the parts, one source each; configs/schema.hpp
// has the whole. A key is one entry: its name, the field it fills, what differs from the usual in
// any order, and its meaning.
//     {"patch_size", &VitConfig::patch_size, kRequired, kCount, Unit{"pixels"}, "Width of ..."}
#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "configs/schema.hpp"

namespace troupe {

inline constexpr Range kCount{1, kMaxCount};
inline constexpr Range kCountOrNone{0, kMaxCount};
inline constexpr Range kPositive{.low = 0, .above_low = true};
inline constexpr Range kNotNegative{.low = 0};

struct Required {};
inline constexpr Required kRequired;
struct SaysWhere {};
inline constexpr SaysWhere kSaysWhere;  ///< KeySpec::placement
struct Unit {
  std::string_view text;
};
struct Otherwise {
  std::string_view text;
};
using Words = std::vector<std::string>;
/// Words for `meant`; see OtherWord.
struct Others {
  std::string_view meant;
  std::vector<std::string_view> words;
  bool supported = true;
};

/// The struct that the keys of a table fill.
template <typename Struct>
Struct& In(const Target& target) {
  // clang-format off
  if constexpr (std::same_as<Struct, RunConfig>) return target.config->run;
  else if constexpr (std::same_as<Struct, ClusterConfig>) return target.config->cluster;
  else if constexpr (std::same_as<Struct, ClusterNode>) return *target.node;
  else if constexpr (std::same_as<Struct, TransportConfig>) return target.config->transport;
  else if constexpr (std::same_as<Struct, ScheduleConfig>) return target.config->schedule;
  else if constexpr (std::same_as<Struct, OptimizerConfig>) return target.config->optimizer;
  else if constexpr (std::same_as<Struct, DataConfig>) return target.config->data;
  else if constexpr (std::same_as<Struct, TraceConfig>) return target.config->trace;
  else if constexpr (std::same_as<Struct, CheckpointConfig>) return target.config->checkpoint;
  else if constexpr (std::same_as<Struct, ModuleConfig>) return *target.module;
  else if constexpr (std::same_as<Struct, VitConfig>) return target.module->vit;
  else if constexpr (std::same_as<Struct, LlamaConfig>) return target.module->llama;
  else if constexpr (std::same_as<Struct, SyntheticConfig>) return target.module->synthetic;
  else if constexpr (std::same_as<Struct, Layout>) return target.module->layout;
  else if constexpr (std::same_as<Struct, InputConfig>) return *target.module->input;
  else if constexpr (std::same_as<Struct, OptimizerOverride>) return target.module->optimizer;
  else if constexpr (std::same_as<Struct, EdgeConfig>) return *target.edge;
  else if constexpr (std::same_as<Struct, ProjectorConfig>) return *target.edge->through;
  // clang-format on
}

/// What a key that fills such a field holds, unless its entry says more.
template <typename Field>
constexpr ValueType TypeOf() {
  if (std::same_as<Field, bool>) return ValueType::kBoolean;
  if (std::is_enum_v<Field>) return ValueType::kWord;
  if (std::floating_point<Field> || std::same_as<Field, std::optional<double>>) {
    return ValueType::kNumber;
  }
  const bool integer = std::integral<Field> || std::same_as<Field, std::optional<std::int64_t>>;
  return integer ? ValueType::kInteger : ValueType::kText;
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
  void Set(ValueType part) { type = part; }
  void Set(Required) { required = true; }
  void Set(SaysWhere) { placement = true; }
  void Set(KindSet part) { kinds = part; }
  void Set(const Range& part) { range = part; }
  void Set(Unit part) { unit = part.text; }
  void Set(Otherwise part) { otherwise = part.text; }
  void Set(KeyRole part) { role = part; }
  void Set(const char* part) { meaning = part; }
  void Set(Words part) {
    type = ValueType::kWord;
    words = std::move(part);
  }
  void Set(const Others& part) {
    for (const auto word : part.words) other_words.push_back({word, part.meant, part.supported});
  }
};

/// What the keys of a table have in common, where their entries say nothing else.
struct Shared {
  std::string_view table;
  KindSet kinds = kEveryKind;
  KeyRole role = KeyRole::kRun;
};

void Add(std::vector<KeySpec>& keys, const Shared& shared, std::initializer_list<KeyEntry> entries);

std::vector<KeySpec> RunKeys();      ///< top level, run, schedule, optimizer, data, trace
std::vector<KeySpec> ClusterKeys();  ///< cluster, its nodes, transport, checkpoint
std::vector<KeySpec> ModuleKeys();   ///< of every module, its layout, input and optimizer
std::vector<KeySpec> KindKeys();     ///< of each kind of module
std::vector<KeySpec> EdgeKeys();

}  // namespace troupe
