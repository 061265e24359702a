#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include "configs/key_value.hpp"
#include "configs/nodes.hpp"
#include "configs/paths.hpp"
#include "configs/rank_list.hpp"
#include "configs/spelling.hpp"

namespace troupe {

using Kind = TomlValue::Kind;
using Refused = std::optional<Refusal>;

static Refused Refuse(const KeySpec& key, const TomlValue& value) {
  return Refusal{value.place, "expected " + Expected(key) + ", got " + Described(value)};
}

static bool InRange(const Range& range, double number) {
  const bool low = range.above_low ? number > range.low : number >= range.low;
  const bool high = range.below_high ? number < range.high : number <= range.high;
  return low && high && std::isfinite(number);
}

static Refused RefuseRange(const KeySpec& key, const TomlValue& value, double number) {
  if (std::isfinite(number) && number > key.range.high && key.range.high == kMaxCount) {
    return Refusal{value.place, "expected at most 2147483647, got " + Described(value)};
  }
  return Refuse(key, value);
}

/// Returns `value` if it is a whole number. Accepts 1e4 and 10000.0, which are floats in TOML.
static std::optional<std::int64_t> WholeNumber(const TomlValue& value) {
  constexpr double kExact = 9'007'199'254'740'992.0;  // 2^53: whole numbers up to it are exact
  if (value.Is(Kind::kInteger)) return value.integer;
  const bool whole = value.Is(Kind::kFloat) && std::trunc(value.number) == value.number &&
                     std::abs(value.number) <= kExact;
  if (!whole) return std::nullopt;
  return static_cast<std::int64_t>(value.number);
}

static Refused ReadInteger(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  const auto whole = WholeNumber(value);
  if (!whole) return Refuse(key, value);
  const auto number = static_cast<double>(*whole);
  if (!InRange(key.range, number)) return RefuseRange(key, value, number);
  if (auto* const* field = std::get_if<int*>(&slot)) **field = static_cast<int>(*whole);
  if (auto* const* field = std::get_if<std::int64_t*>(&slot)) **field = *whole;
  if (auto* const* field = std::get_if<std::optional<std::int64_t>*>(&slot)) **field = *whole;
  if (auto* const* field = std::get_if<std::uint64_t*>(&slot)) {
    **field = static_cast<std::uint64_t>(*whole);
  }
  return {};
}

static Refused ReadNumber(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kInteger) && !value.Is(Kind::kFloat)) return Refuse(key, value);
  const double number = value.Is(Kind::kFloat) ? value.number : static_cast<double>(value.integer);
  if (!InRange(key.range, number)) return RefuseRange(key, value, number);
  if (auto* const* field = std::get_if<double*>(&slot)) **field = number;
  if (auto* const* field = std::get_if<std::optional<double>*>(&slot)) **field = number;
  return {};
}

static Refused ReadText(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kString)) return Refuse(key, value);
  // The operating system would cut a path or name off at a NUL.
  if (value.string.find('\0') != std::string::npos) return Refuse(key, value);
  std::string text = value.string;
  if (key.type == ValueType::kPath) text = Located(text, value.place);
  if (key.type == ValueType::kTokenizer) text = LocatedTokenizer(text, value.place);
  if (auto* const* field = std::get_if<std::string*>(&slot)) **field = text;
  if (auto* const* field = std::get_if<std::optional<std::string>*>(&slot)) **field = text;
  return {};
}

WordMeant MeantWord(const KeySpec& key, const std::string& given) {
  const auto in_lower_case = [](std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
  };
  const std::string lower = in_lower_case(given);
  for (const OtherWord& other : key.other_words) {
    if (other.word == lower) return {std::string(other.meant), other.supported};
  }
  for (const std::string& word : key.words) {
    if (in_lower_case(word) == lower) return {word};
  }
  return {Nearest(given, key.words)};
}

static std::string WordHint(const KeySpec& key, const std::string& given) {
  const WordMeant meant = MeantWord(key, given);
  if (meant.word.empty()) return "";
  if (!meant.supported) return ", which is not supported; the nearest is " + Quoted(meant.word);
  return "; did you mean " + Quoted(meant.word) + "?";
}

static Refused RefuseWord(const KeySpec& key, const TomlValue& value) {
  return Refusal{value.place, "expected " + Expected(key) + ", got " + Quoted(value.string) +
                                  WordHint(key, value.string)};
}

static Refused ReadWord(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kString)) return Refuse(key, value);
  const auto found = std::ranges::find(key.words, value.string);
  if (found == key.words.end()) return RefuseWord(key, value);
  const auto index = found - key.words.begin();
  if (auto* const* field = std::get_if<std::string*>(&slot)) **field = value.string;
  std::visit(
      [&](const auto& field) {
        using Value = std::remove_pointer_t<std::remove_cvref_t<decltype(field)>>;
        if constexpr (std::is_enum_v<Value>) *field = static_cast<Value>(index);
        if constexpr (std::same_as<Value, Model>) {
          // The value is read again with the other keys, which are in the model by then.
          const ModuleKind& kind = *Kinds()[static_cast<std::size_t>(index)];
          if (&field->kind() != &kind) *field = kind.make();
        }
      },
      slot);
  return {};
}

/// Returns "; write "0-3" for 4 ranks": a number may mean a count or the one rank.
static std::string RanksHint(const TomlValue& value) {
  if (!value.Is(Kind::kInteger) || value.integer < 0 || value.integer >= kMaxRanks) return "";
  const std::string number = std::to_string(value.integer);
  if (value.integer < 2) return "; write \"0\" for one rank, the first";
  return "; write \"0-" + std::to_string(value.integer - 1) + "\" for " + number + " ranks, " +
         Quoted(number) + " for that one";
}

static Refused ReadRanks(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  std::vector<int> ranks;
  if (value.Is(Kind::kString)) {
    auto parsed = ParseRanks(value.string);
    if (const auto* reason = std::get_if<std::string>(&parsed)) {
      return Refusal{value.place, *reason + "; expected " + Expected(key)};
    }
    ranks = std::get<std::vector<int>>(std::move(parsed));
  } else if (!value.Is(Kind::kArray) || value.items.empty()) {
    Refused refused = Refuse(key, value);
    refused->text += RanksHint(value);
    return refused;
  }
  for (const auto& item : value.items) {
    const bool rank = item.Is(Kind::kInteger) && item.integer >= 0 && item.integer < kMaxRanks;
    if (!rank) {
      return Refusal{item.place, "expected ranks of at least 0 and at most " +
                                     std::to_string(kMaxRanks - 1) + ", got " + Described(item)};
    }
    ranks.push_back(static_cast<int>(item.integer));
  }
  *std::get<std::vector<int>*>(slot) = std::move(ranks);
  return {};
}

static Refused ReadStages(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  std::vector<std::int64_t> layers;
  const bool balanced = value.Is(Kind::kString) && value.string == "balanced";
  const bool list = value.Is(Kind::kArray) && !value.items.empty();
  if (!balanced && !list) return Refuse(key, value);
  for (const auto& item : value.items) {
    const std::int64_t count = WholeNumber(item).value_or(0);
    if (count < 1 || count > INT32_MAX) {
      return Refusal{item.place,
                     "expected at least 1 layer in every stage, got " + Described(item)};
    }
    layers.push_back(count);
  }
  *std::get<std::vector<std::int64_t>*>(slot) = std::move(layers);
  return {};
}

static Refused ReadWindow(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  const bool step = value.Is(Kind::kString) && value.string == "step";
  const std::int64_t count = WholeNumber(value).value_or(0);
  if (!step && (count < 1 || count > INT32_MAX)) return Refuse(key, value);
  *std::get<std::int64_t*>(slot) = step ? 0 : count;
  return {};
}

static constexpr Range kBeta{.low = 0, .high = 1, .below_high = true};

/// Returns "; write [0.9, 0.95]" if a string contains two numbers, else an example of a list.
static std::string BetasHint(const TomlValue& value) {
  if (value.Is(Kind::kArray)) return "";
  std::vector<double> numbers;
  const char* const end = value.string.data() + value.string.size();
  for (const char* at = value.string.data(); at < end;) {
    double number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    const bool read = error == std::errc();
    if (read) numbers.push_back(number);
    at = read ? rest : at + 1;
  }
  const bool two = numbers.size() == 2 && InRange(kBeta, numbers[0]) && InRange(kBeta, numbers[1]);
  if (!two) return "; write a list such as [0.9, 0.95]";
  return "; write [" + NumberText(numbers[0]) + ", " + NumberText(numbers[1]) + "]";
}

static Refused ReadBetas(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kArray) || value.items.size() != 2) {
    Refused refused = Refuse(key, value);
    refused->text += BetasHint(value);
    return refused;
  }
  std::vector<double> betas;
  for (const auto& item : value.items) {
    const double beta = item.Is(Kind::kInteger) ? static_cast<double>(item.integer) : item.number;
    const bool number = item.Is(Kind::kInteger) || item.Is(Kind::kFloat);
    if (!number || !InRange(kBeta, beta)) {
      return Refusal{item.place, "expected " + Expected(key) + ", got " + Described(item)};
    }
    betas.push_back(beta);
  }
  *std::get<Betas>(slot).first = betas[0];
  *std::get<Betas>(slot).second = betas[1];
  return {};
}

static Refused ReadAxes(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kArray) || value.items.size() != 4) return Refuse(key, value);
  AxisOrder order{};
  std::set<Axis> seen;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& item = value.items[i];
    const auto axis = std::ranges::find(kDefaultAxisOrder, item.string,
                                        [](Axis known) { return ToString(known); });
    const bool word = item.Is(Kind::kString) && axis != kDefaultAxisOrder.end();
    if (!word || !seen.insert(*axis).second) return Refuse(key, value);
    order[i] = *axis;
  }
  *std::get<AxisOrder*>(slot) = order;
  return {};
}

/// The devices of each node follow from cluster.ranks, which may be read later.
static Refused ReadNodeCount(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  const std::int64_t count = WholeNumber(value).value_or(0);
  if (count < 1) return Refuse(key, value);
  if (count > kMaxRanks) {
    return Refusal{value.place, "expected at most " + std::to_string(kMaxRanks) + " nodes, got " +
                                    Described(value)};
  }
  *std::get<std::vector<ClusterNode>*>(slot) = UnfilledNodes(static_cast<int>(count));
  return {};
}

Refused ReadValue(const KeySpec& key, const TomlValue& value, const Target& target) {
  const Slot slot = key.slot == nullptr ? Slot() : key.slot(target);
  switch (key.type) {
    case ValueType::kInteger:
      return ReadInteger(key, value, slot);
    case ValueType::kNumber:
      return ReadNumber(key, value, slot);
    case ValueType::kText:
    case ValueType::kPath:
    case ValueType::kTokenizer:
      return ReadText(key, value, slot);
    case ValueType::kWord:
      return ReadWord(key, value, slot);
    case ValueType::kRanks:
      return ReadRanks(key, value, slot);
    case ValueType::kStages:
      return ReadStages(key, value, slot);
    case ValueType::kWindow:
      return ReadWindow(key, value, slot);
    case ValueType::kBetas:
      return ReadBetas(key, value, slot);
    case ValueType::kAxes:
      return ReadAxes(key, value, slot);
    case ValueType::kFiles:
      return {};
    case ValueType::kNodes:
      return ReadNodeCount(key, value, slot);
    case ValueType::kNotSupported:
      return Refusal{value.place, std::string(kNotSupportedYet) + "; expected " + Expected(key)};
    case ValueType::kBoolean:
      break;
  }
  if (!value.Is(Kind::kBoolean)) return Refuse(key, value);
  *std::get<bool*>(slot) = value.boolean;
  return {};
}

}  // namespace troupe
