// Every table and key of a configuration. The loader reads by it, suggestions search it, the
// resolved file is printed from it, and docs/config.md is checked against it.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// A set of module kinds, one bit each, in the order of Kinds().
using KindSet = std::uint64_t;
KindSet Only(const ModuleKind& kind);
/// Returns the kinds whose default model `accept` accepts.
KindSet KindsWhere(bool (*accept)(const ModelConfig&));
inline constexpr KindSet kEveryKind = ~KindSet{0};

/// Keys that only determine other values and are not stored (configs/settle.hpp).
struct ShapingInputs {
  std::optional<std::int64_t> global_batch = {};  ///< samples in a step
  std::optional<ImageFit> image_fit = {};         ///< of every module that reads images
};

/// The structs that the keys of a table fill. All but `config` are null unless the table needs
/// them; `inputs` is null unless a file is being read.
struct Target {
  Config* config = nullptr;
  ModuleConfig* module = nullptr;
  EdgeConfig* edge = nullptr;
  ClusterNode* node = nullptr;
  ShapingInputs* inputs = nullptr;
  DataSource* source = nullptr;
};

struct Betas {
  double* first;
  double* second;
};

/// The field of a key. monostate: the key has one legal value and is not stored.
using Slot = std::variant<
    std::monostate, std::string*, std::optional<std::string>*, bool*, int*, std::int64_t*,
    std::optional<std::int64_t>*, std::uint64_t*, double*, std::optional<double>*, Precision*,
    ContextExchange*, Balance*, OptimizerShard*, std::optional<OptimizerShard>*, Model*, Offload*,
    ProjectorEnd*, ProjectorKind*, ProcessesPer*, ClusterTls*, TransportVerify*, TransportTcp*,
    Backend*, ScheduleKind*, RateSchedule*, GroupBy*, DataOrder*, OnError*, std::optional<OnError>*,
    AxisOrder*, NumberSet*, std::vector<int>*, std::vector<std::int64_t>*, LayerChoice*,
    std::vector<ClusterNode>*, std::array<double, 3>*, std::vector<TileGrid>*,
    std::optional<ImageFit>*, Betas, EnumField>;

/// A rank is a worker thread. A larger number is a typing error, and lists have this size.
inline constexpr int kMaxRanks = 65'536;
/// Far above any model. With more, checking a configuration would take minutes.
inline constexpr std::size_t kMaxModules = 1'024;

struct KeySpec : KeyText {
  std::string_view table;  ///< TableSpec::path
  KindSet kinds = kEveryKind;
  bool placement = false;  ///< the key places a module: refused together with inline_in
  std::function<Slot(const Target&)> slot = {};
};

struct TableSpec {
  std::string_view path;   ///< dotted; * is the name of a module or node, or FROM and TO
  std::string_view title;  ///< as in errors and documents
  std::string_view meaning = {};
  KindSet kinds = kEveryKind;
  bool placement = false;
  /// Whether the structs have this table.
  bool (*present)(const Target&) = [](const Target&) { return true; };
  /// Adds the table to the structs.
  void (*create)(const Target&) = [](const Target&) {};
};

std::span<const TableSpec> Tables();
std::span<const KeySpec> Keys();

/// Returns the table at `path`, null if there is none.
const TableSpec* FindTable(std::string_view path);
/// Returns that key of the table, null if none of these kinds has it.
const KeySpec* FindKey(std::string_view table, std::string_view name, KindSet kinds = kEveryKind);
/// Returns the kinds that have that key of the table; 0 if none has.
KindSet KindsWithKey(std::string_view table, std::string_view name);
/// Returns the names of keys and sub-tables that are legal in `table`.
std::vector<std::string> NamesIn(std::string_view table, KindSet kinds = kEveryKind);
/// Returns the last part of a path: "layout" of "modules.*.layout".
std::string_view LastOf(std::string_view path);
/// Returns the path without its last part: "" at the top.
std::string_view ParentOf(std::string_view path);

/// Returns "TABLE.KEY", just the key at the top level.
std::string DottedKey(const std::string& table, std::string_view key);

/// A table of a configuration: its dotted name, and the structs that it fills.
struct TableInstance {
  std::string dotted;  ///< "modules.vision.layout"
  Target target;
};
/// Returns the tables of `config` at `path`: one for each module, edge or node if it is of those.
std::vector<TableInstance> InstancesOf(Config& config, std::string_view path);

// The values of a Config in the order in which they are written, with their dotted keys.

struct ResolvedKey {
  std::string dotted;  ///< "modules.vision.layout.tp"
  std::string value;   ///< as TOML
  const KeySpec* spec = nullptr;
};

struct ResolvedTable {
  const TableSpec* spec = nullptr;
  std::string dotted;  ///< "modules.vision.layout"
  std::vector<ResolvedKey> keys;
};

/// Returns every table and key that has a value in this configuration.
std::vector<ResolvedTable> ResolvedTables(const Config& config);

}  // namespace troupe
