#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <set>
#include <type_traits>
#include <utility>

#include "configs/checks.hpp"
#include "configs/key_value.hpp"
#include "configs/paths.hpp"
#include "configs/suggest.hpp"
#include "layout/text.hpp"

namespace troupe {

using Kind = TomlValue::Kind;
using Refused = std::optional<ConfigError>;

/// Prints a bound, which is whole or short: 0, 1, 65536, 0.5.
static std::string BoundText(double bound) {
  const auto whole = static_cast<std::int64_t>(bound);
  return static_cast<double>(whole) == bound ? std::to_string(whole) : NumberText(bound);
}

static std::string ExpectedNumber(const KeySpec& key) {
  const bool whole = key.type == ValueType::kInteger;
  const Range& range = key.range;
  std::string text = whole ? "a whole number" : "a number";
  if (!key.unit.empty()) text += " (" + std::string(key.unit) + ")";
  if (range.low == range.high) return BoundText(range.low);
  const bool low = range.low > -kMaxCount;
  const bool high = range.high < kMaxCount;
  if (low) text += (range.above_low ? " above " : " of at least ") + BoundText(range.low);
  if (low && high) text += " and";
  if (high) text += (range.below_high ? " below " : " at most ") + BoundText(range.high);
  return text;
}

static Refused Refuse(const KeySpec& key, const TomlValue& value, const std::string& hint = "") {
  return ConfigError{value.place, "expected " + Expected(key) + ", got " + Described(value) + hint};
}

static bool InRange(const Range& range, double number) {
  const bool low = range.above_low ? number > range.low : number >= range.low;
  const bool high = range.below_high ? number < range.high : number <= range.high;
  return low && high && std::isfinite(number);
}

static Refused RefuseRange(const KeySpec& key, const TomlValue& value, double number) {
  if (std::isfinite(number) && number > key.range.high && key.range.high == kMaxCount) {
    return ConfigError{value.place, "expected at most 2147483647, got " + Described(value)};
  }
  return Refuse(key, value);
}

/// Stores `value` if the field holds one of `Values`, or nothing.
template <class... Values, class Value>
static void Store(const Slot& slot, const Value& value) {
  std::visit(
      [&](const auto& field) {
        using Stored = std::remove_pointer_t<std::remove_cvref_t<decltype(field)>>;
        constexpr bool kHolds = (std::same_as<Stored, Values> || ...);
        constexpr bool kMayHold = (std::same_as<Stored, std::optional<Values>> || ...);
        if constexpr (kHolds) *field = static_cast<Stored>(value);
        if constexpr (kMayHold) *field = value;
      },
      slot);
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
  Store<int, std::int64_t, std::uint64_t>(slot, *whole);
  return {};
}

static Refused ReadNumber(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kInteger) && !value.Is(Kind::kFloat)) return Refuse(key, value);
  const double number = value.Is(Kind::kFloat) ? value.number : static_cast<double>(value.integer);
  if (!InRange(key.range, number)) return RefuseRange(key, value, number);
  Store<double>(slot, number);
  return {};
}

static Refused ReadText(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kString)) return Refuse(key, value);
  // The operating system would cut a path or name off at a NUL.
  if (value.string.find('\0') != std::string::npos) return Refuse(key, value);
  Store<std::string>(slot, Located(key.type, value.string, value.place));
  return {};
}

WordMeant MeantWord(const KeySpec& key, const std::string& given) {
  const std::string lower = InLowerCase(given);
  for (const OtherWord& other : key.other_words) {
    if (other.word == lower) return {std::string(other.meant), other.supported};
  }
  for (const std::string& word : key.words) {
    if (InLowerCase(word) == lower) return {word};
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
  return ConfigError{value.place, "expected " + Expected(key) + ", got " + Quoted(value.string) +
                                      WordHint(key, value.string)};
}

template <class Value>
static constexpr bool kIsOptionalWord = false;
template <class Enum>
static constexpr bool kIsOptionalWord<std::optional<Enum>> = std::is_enum_v<Enum>;

static Refused ReadWord(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kString)) return Refuse(key, value);
  const auto found = std::ranges::find(key.words, value.string);
  if (found == key.words.end()) return RefuseWord(key, value);
  const auto index = found - key.words.begin();
  Store<std::string>(slot, value.string);
  std::visit(
      [&](const auto& field) {
        using Value = std::remove_pointer_t<std::remove_cvref_t<decltype(field)>>;
        if constexpr (std::is_enum_v<Value>) *field = static_cast<Value>(index);
        if constexpr (kIsOptionalWord<Value>) {
          *field = static_cast<typename Value::value_type>(index);
        }
        if constexpr (std::same_as<Value, EnumField>) field.set(static_cast<std::size_t>(index));
        if constexpr (std::same_as<Value, Model>) {
          // The value is read again with the other keys, which are in the model by then.
          const ModuleKind& kind = *Kinds()[static_cast<std::size_t>(index)];
          if (&field->kind() != &kind) *field = kind.make();
        }
      },
      slot);
  return {};
}

static Refused ReadWords(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  const bool one = key.type == ValueType::kSomeWords && value.Is(Kind::kString);
  if (!one && !value.Is(Kind::kArray)) return Refuse(key, value);
  const bool none = one && value.string == kNoWord;
  NumberSet numbers;
  std::set<std::string> seen;
  for (const auto& item : one ? std::span(&value, none ? 0 : 1) : std::span(value.items)) {
    if (!item.Is(Kind::kString)) return Refuse(key, item);
    if (item.string == kNoWord) {
      return ConfigError{item.place, "expected \"none\" outside a list, or a list without it"};
    }
    const auto found = std::ranges::find(key.words, item.string);
    if (found == key.words.end()) return RefuseWord(key, item);
    if (!seen.insert(item.string).second) {
      return ConfigError{item.place,
                         "expected each word once, got " + Quoted(item.string) + " twice"};
    }
    numbers.AddNumber(static_cast<std::size_t>(found - key.words.begin()));
  }
  *std::get<NumberSet*>(slot) = numbers;
  return {};
}

std::string_view Trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

static std::optional<int> ParseRank(std::string_view text) {
  text = Trimmed(text);
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && rank >= 0 && rank < kMaxRanks ? std::optional(rank) : std::nullopt;
}

/// Adds the ranks of "5" or "0-2". Returns the reason if `part` is neither, else "".
static std::string AddPart(std::string_view part, std::vector<int>& ranks) {
  const auto dash = part.find('-');
  const auto first = ParseRank(part.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : ParseRank(part.substr(dash + 1));
  if (!first || !last) return Quoted(Trimmed(part)) + " is neither a rank nor first-last";
  if (*last < *first) return Quoted(Trimmed(part)) + " runs backwards";
  if (ranks.size() + static_cast<std::size_t>(*last - *first) >= kMaxRanks) {
    return "more than " + std::to_string(kMaxRanks) + " ranks";
  }
  for (int rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  return {};
}

std::variant<std::vector<int>, std::string> ParseRanks(std::string_view text) {
  std::vector<int> ranks;
  for (const std::string& part : Split(text, ',')) {
    if (auto reason = AddPart(part, ranks); !reason.empty()) return reason;
  }
  return ranks;
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
      return ConfigError{value.place, *reason + "; expected " + Expected(key)};
    }
    ranks = std::get<std::vector<int>>(std::move(parsed));
  } else if (!value.Is(Kind::kArray) || value.items.empty()) {
    return Refuse(key, value, RanksHint(value));
  }
  for (const auto& item : value.items) {
    const bool rank = item.Is(Kind::kInteger) && item.integer >= 0 && item.integer < kMaxRanks;
    if (!rank) {
      return ConfigError{item.place, "expected ranks of at least 0 and at most " +
                                         std::to_string(kMaxRanks - 1) + ", got " +
                                         Described(item)};
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
      return ConfigError{item.place,
                         "expected at least 1 layer in every stage, got " + Described(item)};
    }
    layers.push_back(count);
  }
  *std::get<std::vector<std::int64_t>*>(slot) = std::move(layers);
  return {};
}

static Refused ReadLayers(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  LayerChoice choice{.automatic = value.Is(Kind::kString) && value.string == "auto"};
  const bool none = value.Is(Kind::kString) && value.string == kNoWord;
  if (!choice.automatic && !none && !value.Is(Kind::kArray)) return Refuse(key, value);
  std::set<std::int64_t> seen;
  for (const auto& item : value.items) {
    const std::int64_t layer = WholeNumber(item).value_or(-1);
    if (layer < 0 || layer > INT32_MAX) {
      return ConfigError{item.place,
                         "expected the number of a layer, from 0, got " + Described(item)};
    }
    if (!seen.insert(layer).second) {
      return ConfigError{item.place,
                         "expected each layer once, got " + std::to_string(layer) + " twice"};
    }
    choice.layers.push_back(layer);
  }
  *std::get<LayerChoice*>(slot) = std::move(choice);
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
    return Refuse(key, value, BetasHint(value));
  }
  std::vector<double> betas;
  for (const auto& item : value.items) {
    const double beta = item.Is(Kind::kInteger) ? static_cast<double>(item.integer) : item.number;
    const bool number = item.Is(Kind::kInteger) || item.Is(Kind::kFloat);
    if (!number || !InRange(kBeta, beta)) return Refuse(key, item);
    betas.push_back(beta);
  }
  *std::get<Betas>(slot).first = betas[0];
  *std::get<Betas>(slot).second = betas[1];
  return {};
}

static Refused ReadChannels(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  std::array<double, 3> channels{};
  if (!value.Is(Kind::kArray) || value.items.size() != channels.size()) return Refuse(key, value);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const TomlValue& item = value.items[i];
    channels[i] = item.Is(Kind::kInteger) ? static_cast<double>(item.integer) : item.number;
    const bool number = item.Is(Kind::kInteger) || item.Is(Kind::kFloat);
    if (number && InRange(key.range, channels[i])) continue;
    return ConfigError{item.place, "expected " + ExpectedNumber(key) + ", got " + Described(item)};
  }
  *std::get<std::array<double, 3>*>(slot) = channels;
  return {};
}

/// Returns the grid that "2x1" names, if it names one.
static std::optional<TileGrid> ParseGrid(std::string_view text) {
  TileGrid grid;
  const char* const end = text.data() + text.size();
  const auto [cross, error] = std::from_chars(text.data(), end, grid.rows);
  if (error != std::errc() || cross == end || *cross != 'x') return std::nullopt;
  const auto [rest, failure] = std::from_chars(cross + 1, end, grid.columns);
  const auto good = [](std::int64_t side) { return side >= 1 && side <= kMaxGridSide; };
  const bool whole = failure == std::errc() && rest == end;
  return whole && good(grid.rows) && good(grid.columns) ? std::optional(grid) : std::nullopt;
}

static Refused ReadGrids(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kArray) || value.items.empty()) return Refuse(key, value);
  std::vector<TileGrid> grids;
  for (const auto& item : value.items) {
    const auto grid = ParseGrid(item.Is(Kind::kString) ? item.string : "");
    if (!grid) return Refuse(key, item);
    grids.push_back(*grid);
  }
  *std::get<std::vector<TileGrid>*>(slot) = std::move(grids);
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
    return ConfigError{value.place, "expected at most " + std::to_string(kMaxRanks) +
                                        " nodes, got " + Described(value)};
  }
  auto& nodes = *std::get<std::vector<ClusterNode>*>(slot);
  nodes.assign(static_cast<std::size_t>(count), {});
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name = DefaultNodeName(i);
  return {};
}

static Refused ReadBoolean(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  if (!value.Is(Kind::kBoolean)) return Refuse(key, value);
  *std::get<bool*>(slot) = value.boolean;
  return {};
}

static Refused ReadWeights(const KeySpec& key, const TomlValue& value, const Slot& slot) {
  const bool named =
      value.Is(Kind::kString) && (!HuggingFaceFolder(value.string).empty() ||
                                  (key.table != "model" && !WeightsRun(value.string).empty()));
  if (!named) return Refuse(key, value);
  return ReadText(key, value, slot);
}

/// `extends`, which ReadFiles reads.
static Refused SkipFiles(const KeySpec&, const TomlValue&, const Slot&) { return {}; }

namespace {

struct ValueForm {
  Refused (*read)(const KeySpec& key, const TomlValue& value, const Slot& slot);
  const char* expected;  ///< "": depends on the key
};

/// In the order of ValueType.
constexpr auto kForms = std::to_array<ValueForm>({
    {ReadInteger, ""},
    {ReadNumber, ""},
    {ReadBoolean, "true or false"},
    {ReadText, "a string"},
    {ReadText, "a file"},
    {ReadText, "\"bytes\" or \"sentencepiece:FILE\""},
    {ReadWeights, ""},
    {ReadWord, ""},
    {ReadWords, ""},
    {ReadWords, ""},
    {ReadRanks, "ranks like \"4-7\", \"0-2,5\" or [0, 1, 2, 5]"},
    {ReadStages, "\"balanced\" or a list of layers per stage like [1, 3]"},
    {ReadLayers, "\"none\", \"auto\" or a list of layers like [0, 1]"},
    {ReadWindow, "\"step\" or a whole number (microbatches) of at least 1"},
    {ReadBetas, "two numbers of at least 0 and below 1"},
    {ReadChannels, "three numbers: red, green, blue"},
    {ReadGrids, "a list of grids, rows x columns from 1 to 16, like [\"1x2\", \"2x1\"]"},
    {ReadAxes, "\"tp\", \"cp\", \"dp\" and \"pp\" once each, fastest first"},
    {SkipFiles, "a list of files"},
    {ReadNodeCount, "a whole number (nodes) of at least 1, or [[cluster.nodes]] tables"},
});
static_assert(kForms.size() == static_cast<std::size_t>(ValueType::kNodes) + 1);

const ValueForm& FormOf(const KeySpec& key) { return kForms[static_cast<std::size_t>(key.type)]; }

}  // namespace

std::string Expected(const KeySpec& key) {
  if (key.type == ValueType::kWord) return Alternatives(key.words);
  if (key.type == ValueType::kWords) return "a list of " + Alternatives(key.words);
  if (key.type == ValueType::kSomeWords) {
    return Quoted(std::string(kNoWord)) + ", or one or a list of " + Alternatives(key.words);
  }
  if (key.type == ValueType::kWeights) {
    return key.table == "model" ? "\"hf:DIR\"" : "\"hf:DIR\" or \"run:DIR\"";
  }
  const std::string expected = FormOf(key).expected;
  return expected.empty() ? ExpectedNumber(key) : expected;
}

Refused ReadValue(const KeySpec& key, const TomlValue& value, const Target& target) {
  return FormOf(key).read(key, value, key.slot == nullptr ? Slot() : key.slot(target));
}

}  // namespace troupe
