#include <algorithm>
#include <type_traits>

#include "configs/checks.hpp"
#include "configs/key_value.hpp"
#include "configs/paths.hpp"
#include "layout/text.hpp"

namespace troupe {

namespace {

/// One overload per alternative of Slot.
struct Printer {
  const KeySpec& key;

  std::string Word(std::size_t index) const { return Quoted(key.words[index]); }

  std::string operator()(std::monostate) const {
    if (key.type == ValueType::kWord) return Word(0);
    if (key.type != ValueType::kInteger) return {};
    return std::to_string(static_cast<std::int64_t>(key.range.low));
  }
  std::string operator()(const std::string* field) const {
    return Quoted(Absolute(key.type, *field));
  }
  std::string operator()(const bool* field) const { return *field ? "true" : "false"; }
  std::string operator()(const int* field) const { return std::to_string(*field); }
  std::string operator()(const std::int64_t* field) const {
    if (key.type == ValueType::kWindow && *field == 0) return Quoted("step");
    return std::to_string(*field);
  }
  std::string operator()(const std::uint64_t* field) const { return std::to_string(*field); }
  std::string operator()(const double* field) const { return NumberText(*field); }
  template <typename Value>
  std::string operator()(const std::optional<Value>* field) const {
    return *field ? (*this)(&**field) : std::string();
  }
  template <typename Enum>
  requires std::is_enum_v<Enum> std::string operator()(const Enum* field) const {
    return Word(static_cast<std::size_t>(*field));
  }
  std::string operator()(const EnumField& field) const { return Word(field.get()); }
  std::string operator()(const NumberSet* field) const {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < key.words.size(); ++i) {
      if (field->HasNumber(i)) words.push_back(Word(i));
    }
    if (key.type == ValueType::kSomeWords && words.size() < 2) {
      return words.empty() ? Quoted(std::string(kNoWord)) : words.front();
    }
    return "[" + Listed(words, ", ") + "]";
  }
  std::string operator()(const Model* field) const { return Quoted(field->kind().word); }
  std::string operator()(const AxisOrder* field) const {
    return "[" + Listed(*field, ", ", [](Axis axis) { return Quoted(ToString(axis)); }) + "]";
  }
  std::string operator()(const std::vector<int>* field) const { return Quoted(RanksText(*field)); }
  std::string operator()(const std::vector<std::int64_t>* field) const {
    if (field->empty()) return Quoted("balanced");
    return "[" + Listed(*field, ", ", [](std::int64_t n) { return std::to_string(n); }) + "]";
  }
  std::string operator()(const LayerChoice* field) const {
    if (field->layers.empty()) return Quoted(field->automatic ? "auto" : std::string(kNoWord));
    return "[" + Listed(field->layers, ", ", [](std::int64_t n) { return std::to_string(n); }) +
           "]";
  }
  std::string operator()(const std::vector<ClusterNode>* field) const {
    return AreAlike(*field) ? std::to_string(std::max<std::size_t>(field->size(), 1)) : "";
  }
  std::string operator()(const std::array<double, 3>* field) const {
    return "[" + Listed(*field, ", ", NumberText) + "]";
  }
  std::string operator()(const std::vector<TileGrid>* field) const {
    if (field->empty()) return {};
    return "[" + Listed(*field, ", ", [](const TileGrid& grid) { return Quoted(ToString(grid)); }) +
           "]";
  }
  std::string operator()(const Betas& betas) const {
    return "[" + NumberText(*betas.first) + ", " + NumberText(*betas.second) + "]";
  }
};

}  // namespace

std::string PrintValue(const KeySpec& key, const Target& target) {
  return std::visit(Printer{key}, key.slot == nullptr ? Slot() : key.slot(target));
}

std::string PrintDefault(const KeySpec& key) {
  Config config;
  ModuleConfig module;
  EdgeConfig edge;
  ClusterNode node;
  DataSource source;
  for (const ModuleKind* kind : Kinds()) {
    if (key.kinds == Only(*kind)) module.model = kind->make();
  }
  const Target target{&config, &module, &edge, &node, nullptr, &source};
  FindTable(key.table)->create(target);
  return PrintValue(key, target);
}

}  // namespace troupe
