// The description of a key of a configuration. A key is one entry: its name, the field it fills,
// its meaning, and, in any order, its deviations from the defaults.
//     {"patch_size", &VitConfig::patch_size, kRequired, kCount, Unit{"pixels"}, "Width of ..."}
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe {

/// The form of a key's value.
enum class ValueType {
  kInteger,
  kNumber,  ///< an integer is accepted
  kBoolean,
  kText,
  kPath,       ///< of a file; relative ones start at the file that states them (configs/paths.hpp)
  kTokenizer,  ///< "bytes", or "sentencepiece:" or "hf:" and such a path
  kWeights,    ///< "hf:" and the path of a folder, or "run:" and that of a run
  kWord,       ///< one of KeyText::words
  kWords,      ///< a list of KeyText::words, each at most once, possibly empty
  kSomeWords,  ///< the same; one word stands for a list of it, "none" for an empty one
  kRanks,      ///< "4-7", "0-2,5" or a list; order kept
  kStages,     ///< "balanced" or a list of layer counts
  kLayerList,  ///< "none", "auto" or a list of layer numbers
  kWindow,     ///< "step" or a count
  kBetas,      ///< two numbers in [0, 1)
  kChannels,   ///< three numbers: red, green, blue
  kGrids,      ///< a list of grids, rows x columns: "2x1"
  kAxes,       ///< the four axes in some order
  kFiles,      ///< a list of paths
  kNodes       ///< a count; TableSpec describes how tables of the same name are read
};

/// Stands for an empty list of kSomeWords.
inline constexpr std::string_view kNoWord = "none";

/// The text for keys, values and edges that a later version may accept.
inline constexpr const char* kNotSupportedYet = "not supported yet";

/// Bounds of a number. Whole numbers stop at 2^31 - 1 so that products of three stay in 64 bits.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   ///< low itself is refused
  bool below_high = false;  ///< high itself is refused
};
inline constexpr double kMaxCount = 2'147'483'647.0;
/// Far above any model. With more, checking a configuration would take minutes.
inline constexpr int kMaxLayers = 10'000;
inline constexpr Range kCount{1, kMaxCount};
inline constexpr Range kCountOrNone{0, kMaxCount};
inline constexpr Range kLayers{1, kMaxLayers};
inline constexpr Range kPositive{.low = 0, .above_low = true};
inline constexpr Range kNotNegative{.low = 0};

/// Whether a run may resume with another value of a key.
enum class KeyRole {
  kRun,       ///< no, unless asked for by name: the value determines the training or its data
  kTuning,    ///< only with --set, with a notice: it changes numbers but no tensor
  kLayout,    ///< with a notice: it changes how the job is cut
  kRounding,  ///< with a notice: it changes how the same numbers are rounded
  kExecution  ///< yes: it changes place, speed, duration or output files; the numbers stay the same
};

/// A common word for one of ours. The comparison ignores case.
struct OtherWord {
  std::string_view word;
  std::string_view meant;  ///< one of KeyText::words
  bool supported = true;   ///< false: `meant` is only the nearest, not the same
};

/// The description of a key, for any struct.
struct KeyText {
  std::string_view name;
  ValueType type = ValueType::kText;
  bool required = false;
  bool added_later = false;  ///< resolved files that lack it are older: they mean its default
  Range range = {};
  std::string_view unit = {};  ///< "" = none
  std::vector<std::string> words = {};
  std::vector<OtherWord> other_words = {};
  KeyRole role = KeyRole::kRun;
  /// Describes how the default follows from other keys. FillDefaults fills it.
  std::string_view otherwise = {};
  std::string_view meaning = {};
};

struct Required {};
inline constexpr Required kRequired;
struct AddedLater {};
inline constexpr AddedLater kAddedLater;
struct Unit {
  std::string_view text;
};
struct Otherwise {
  std::string_view text;
};
using Words = std::vector<std::string>;
/// Other words for `meant`; see OtherWord.
struct Others {
  std::string_view meant;
  std::vector<std::string_view> words;
  bool supported = true;
};

/// Returns the form of a key that fills such a field, unless its entry states another.
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

inline void Put(KeyText& key, ValueType part) { key.type = part; }
inline void Put(KeyText& key, Required) { key.required = true; }
inline void Put(KeyText& key, AddedLater) { key.added_later = true; }
inline void Put(KeyText& key, const Range& part) { key.range = part; }
inline void Put(KeyText& key, Unit part) { key.unit = part.text; }
inline void Put(KeyText& key, Otherwise part) { key.otherwise = part.text; }
inline void Put(KeyText& key, KeyRole part) { key.role = part; }
inline void Put(KeyText& key, const char* part) { key.meaning = part; }
inline void Put(KeyText& key, Words part) {
  key.type = ValueType::kWord;
  key.words = std::move(part);
}
inline void Put(KeyText& key, const Others& part) {
  for (const auto word : part.words) key.other_words.push_back({word, part.meant, part.supported});
}

}  // namespace troupe
