// Every table and key a configuration may hold, stated once: the loader reads by it, suggestions
// search it, the resolved file is printed from it, and docs/config.md is checked against it.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// What a key's value looks like.
enum class ValueType {
  kInteger,
  kNumber,  ///< an integer will do
  kBoolean,
  kText,
  kPath,       ///< of a file; relative ones start at the file that states them (configs/paths.hpp)
  kTokenizer,  ///< "bytes", or "sentencepiece:" and such a path
  kWord,       ///< one of KeySpec::words
  kRanks,      ///< "4-7", "0-2,5" or a list; order kept
  kStages,     ///< "balanced" or a list of layer counts
  kWindow,     ///< "step" or a count
  kBetas,      ///< two numbers in [0, 1)
  kAxes,       ///< the four axes in some order
  kFiles,      ///< a list of paths
  kNodes,      ///< a count; tables of the same name are read as TableSpec says
  kNotSupported  ///< known, and refused whatever it holds
};

/// What messages and documents say of keys, values and edges that a later version may take.
inline constexpr const char* kNotSupportedYet = "not supported yet";

/// A set of module kinds, one bit each.
using KindSet = unsigned;
constexpr KindSet Only(ModuleKind kind) { return 1U << static_cast<unsigned>(kind); }
inline constexpr KindSet kVitOnly = Only(ModuleKind::kVit);
inline constexpr KindSet kLlamaOnly = Only(ModuleKind::kLlama);
inline constexpr KindSet kSyntheticOnly = Only(ModuleKind::kSynthetic);
inline constexpr KindSet kEveryKind = kVitOnly | kLlamaOnly | kSyntheticOnly;

/// The words of `kind`, in the order of ModuleKind.
std::span<const std::string> KindWords();

/// What only shapes other values, and is gone once it has (configs/settle.hpp).
struct ShapingInputs {
  std::optional<std::int64_t> global_batch = {};  ///< samples in a step
};

/// The structs that the keys of a table fill; all but config only where the table is theirs, and
/// inputs only where something is read.
struct Target {
  Config* config = nullptr;
  ModuleConfig* module = nullptr;
  EdgeConfig* edge = nullptr;
  ClusterNode* node = nullptr;
  ShapingInputs* inputs = nullptr;
};

struct Betas {
  double* first;
  double* second;
};

/// The field behind a key. monostate: the key has one legal value and is stored nowhere.
using Slot = std::variant<std::monostate, std::string*, std::optional<std::string>*, bool*, int*,
                          std::int64_t*, std::optional<std::int64_t>*, std::uint64_t*, double*,
                          std::optional<double>*, Precision*, ModuleKind*, Recompute*, Offload*,
                          ProjectorEnd*, ProcessesPer*, ClusterTls*, TransportVerify*,
                          TransportTcp*, Backend*, ScheduleKind*, AxisOrder*, std::vector<int>*,
                          std::vector<std::int64_t>*, std::vector<ClusterNode>*, Betas>;

/// Bounds of a number. Whole numbers stop at 2^31 - 1 so that products of three stay in 64 bits.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   ///< low itself is refused
  bool below_high = false;  ///< high itself is refused
};
inline constexpr double kMaxCount = 2'147'483'647.0;
/// A rank is a worker thread: more are a slip of the pen, and lists are sized by it.
inline constexpr int kMaxRanks = 65'536;
/// Far above any model; beyond them a configuration is a mistake, and checking it would take
/// minutes.
inline constexpr std::size_t kMaxModules = 1'024;
inline constexpr int kMaxLayers = 10'000;

/// What the value of a key decides, and so whether a run may resume with another one.
enum class KeyRole {
  kRun,     ///< what is trained on what, and how it is cut into shards: only with the same
  kTuning,  ///< decides numbers and no shard: with another one where --set states it, which is said
  kRounding,  ///< how the same numbers are rounded: with another one, which is said
  kExecution  ///< where, how fast, how long, what is left behind: the numbers stay the same
};

/// What people write and this program calls otherwise. In any case of letters.
struct OtherWord {
  std::string_view word;
  std::string_view meant;  ///< one of KeySpec::words
  bool supported = true;   ///< false: `meant` is the nearest there is, and not the same
};

struct KeySpec {
  std::string_view table;  ///< TableSpec::path
  std::string_view name;
  ValueType type = ValueType::kText;
  KindSet kinds = kEveryKind;
  bool required = false;
  bool placement = false;  ///< says where a module runs: not beside inline_in
  Range range = {};
  std::string_view unit = {};  ///< "" = none
  std::vector<std::string> words = {};
  std::vector<OtherWord> other_words = {};
  KeyRole role = KeyRole::kRun;
  /// Where the default follows from other keys: how, in words. FillDefaults fills it.
  std::string_view otherwise = {};
  std::string_view meaning = {};
  std::function<Slot(const Target&)> slot = {};
};

struct TableSpec {
  std::string_view path;   ///< dotted; * stands for a module's or node's name, for from and to
  std::string_view title;  ///< as errors and docs write it
  std::string_view meaning = {};
  KindSet kinds = kEveryKind;
  bool placement = false;
  /// Whether the structs hold this table.
  bool (*present)(const Target&) = [](const Target&) { return true; };
  /// Makes room for it in the structs.
  void (*create)(const Target&) = [](const Target&) {};
};

std::span<const TableSpec> Tables();
std::span<const KeySpec> Keys();

/// The table at `path`, null when there is none.
const TableSpec* FindTable(std::string_view path);
/// The key of that table, null when none of these kinds has it.
const KeySpec* FindKey(std::string_view table, std::string_view name, KindSet kinds = kEveryKind);
/// Names of keys and sub-tables that may stand in `table`.
std::vector<std::string> NamesIn(std::string_view table, KindSet kinds = kEveryKind);
/// The last part of a path: "layout" of "modules.*.layout".
std::string_view LastOf(std::string_view path);
/// The path without its last part: "" at the top.
std::string_view ParentOf(std::string_view path);

/// What belongs there: `a whole number (pixels) of at least 1`.
std::string Expected(const KeySpec& key);

}  // namespace troupe
