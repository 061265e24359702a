#include <algorithm>
#include <type_traits>

#include "configs/key_value.hpp"
#include "configs/nodes.hpp"
#include "configs/paths.hpp"
#include "layout/ranks_text.hpp"

namespace troupe {

static std::string AxesText(const AxisOrder& order) {
  std::string text;
  for (const Axis axis : order) {
    if (!text.empty()) text += ", ";
    text += Quoted(ToString(axis));
  }
  return "[" + text + "]";
}

static std::string StagesText(const std::vector<std::int64_t>& layers) {
  if (layers.empty()) return Quoted("balanced");
  std::string text;
  for (const auto count : layers) {
    if (!text.empty()) text += ", ";
    text += std::to_string(count);
  }
  return "[" + text + "]";
}

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
    if (key.type == ValueType::kPath) return Quoted(AbsolutePath(*field));
    if (key.type == ValueType::kTokenizer) return Quoted(AbsoluteTokenizer(*field));
    return Quoted(*field);
  }
  std::string operator()(const std::optional<std::string>* field) const {
    return *field ? Quoted(**field) : std::string();
  }
  std::string operator()(const bool* field) const { return *field ? "true" : "false"; }
  std::string operator()(const int* field) const { return std::to_string(*field); }
  std::string operator()(const std::int64_t* field) const {
    if (key.type == ValueType::kWindow && *field == 0) return Quoted("step");
    return std::to_string(*field);
  }
  std::string operator()(const std::optional<std::int64_t>* field) const {
    return *field ? std::to_string(**field) : std::string();
  }
  std::string operator()(const std::uint64_t* field) const { return std::to_string(*field); }
  std::string operator()(const double* field) const { return NumberText(*field); }
  std::string operator()(const std::optional<double>* field) const {
    return *field ? NumberText(**field) : std::string();
  }
  template <typename Enum>
  requires std::is_enum_v<Enum> std::string operator()(const Enum* field) const {
    return Word(static_cast<std::size_t>(*field));
  }
  std::string operator()(const Model* field) const { return Quoted(field->kind().word); }
  std::string operator()(const AxisOrder* field) const { return AxesText(*field); }
  std::string operator()(const std::vector<int>* field) const { return Quoted(RanksText(*field)); }
  std::string operator()(const std::vector<std::int64_t>* field) const {
    return StagesText(*field);
  }
  std::string operator()(const std::vector<ClusterNode>* field) const {
    return AreAlike(*field) ? std::to_string(std::max<std::size_t>(field->size(), 1)) : "";
  }
  std::string operator()(const Betas& betas) const {
    std::string text = "[";
    text += NumberText(*betas.first) + ", " + NumberText(*betas.second);
    return text + "]";
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
  for (const ModuleKind* kind : Kinds()) {
    if (key.kinds == Only(*kind)) module.model = kind->make();
  }
  const Target target{&config, &module, &edge, &node};
  FindTable(key.table)->create(target);
  return PrintValue(key, target);
}

}  // namespace troupe
