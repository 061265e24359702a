#include "configs/config.hpp"

#include <algorithm>
#include <unordered_set>

#include "layout/text.hpp"

namespace troupe {

const ModuleConfig* Config::Find(const std::string& module) const {
  const auto found = std::ranges::find(modules, module, &ModuleConfig::name);
  return found == modules.end() ? nullptr : &*found;
}

const EdgeConfig* Config::FindEdge(const std::string& from, const std::string& to) const {
  const auto found = std::ranges::find_if(
      edges, [&](const EdgeConfig& edge) { return edge.from == from && edge.to == to; });
  return found == edges.end() ? nullptr : &*found;
}

const ModuleConfig* Config::FindSink() const {
  std::unordered_set<std::string_view> feeding;
  for (const EdgeConfig& edge : edges) feeding.insert(edge.from);
  const auto sink = std::ranges::find_if(
      modules, [&](const ModuleConfig& module) { return !feeding.contains(module.name); });
  return sink == modules.end() ? nullptr : &*sink;
}

const ModuleConfig& Config::Sink() const {
  if (const ModuleConfig* const sink = FindSink()) return *sink;
  throw LayoutError("modules: every module feeds another one, expected one that feeds none");
}

std::int64_t Config::samples_per_microbatch() const {
  return schedule.micro_batch_size * Sink().layout.dp;
}

std::int64_t Config::most_in_pack() const {
  if (!data.packing) return 1;
  const auto text = Sink().model->text();
  return text ? text->context : 1;  // each has a token
}

bool NamesTcp(const std::string& ucx_tls) {
  return std::ranges::any_of(Split(ucx_tls, ','), [](const std::string& transport) {
    return transport == "tcp" || transport == "all";
  });
}

int GpuOf(const ClusterConfig& cluster, int rank) {
  int place = rank;
  for (const ClusterNode& node : cluster.nodes) {
    if (place < node.devices) break;
    place -= node.devices;
  }
  return place / cluster.ranks_per_gpu;
}

int GpusNeeded(const ClusterConfig& cluster) {
  int most = cluster.nodes.empty() ? cluster.ranks : 0;
  for (const ClusterNode& node : cluster.nodes) most = std::max(most, node.devices);
  return (most + cluster.ranks_per_gpu - 1) / cluster.ranks_per_gpu;
}

std::string MissingGpus(const ClusterConfig& cluster, const std::vector<int>& ranks, int found) {
  int needed = 0;
  for (const int rank : ranks) needed = std::max(needed, GpuOf(cluster, rank) + 1);
  if (found >= needed) return "";
  std::string text = "expected " + std::to_string(needed) + (needed == 1 ? " GPU" : " GPUs") +
                     " for " + (ranks.size() == 1 ? "rank " : "ranks ") + RanksText(ranks);
  if (ranks.size() > 1)
    text += " with at most " + std::to_string(cluster.ranks_per_gpu) + " on each";
  text += ", found " + std::to_string(found);
  if (found > 0) text += " (cluster.ranks_per_gpu says how many ranks may share one)";
  return text;
}

std::vector<std::string> DataConfig::train_paths() const {
  if (sources.empty()) return {train};
  std::vector<std::string> paths;
  for (const DataSource& source : sources) paths.push_back(source.path);
  return paths;
}

std::string DataConfig::train_name() const { return Listed(train_paths()); }

std::string HuggingFaceFolder(std::string_view value) {
  if (!value.starts_with(kHuggingFace)) return {};
  return std::string(value.substr(kHuggingFace.size()));
}

std::string WeightsRun(std::string_view weights) {
  if (!weights.starts_with(kRunWeights)) return {};
  return std::string(weights.substr(kRunWeights.size()));
}

std::string SentencePieceFile(std::string_view tokenizer) {
  if (!tokenizer.starts_with(kSentencePiece)) return "";
  return std::string(tokenizer.substr(kSentencePiece.size()));
}

const std::string& ToString(Backend backend) {
  return kBackendWords[static_cast<std::size_t>(backend)];
}

const std::string& ToString(ScheduleKind kind) {
  return kScheduleWords[static_cast<std::size_t>(kind)];
}

std::optional<ScheduleKind> ScheduleKindOf(std::string_view word) {
  const auto found = std::ranges::find(kScheduleWords, word);
  if (found == kScheduleWords.end()) return std::nullopt;
  return static_cast<ScheduleKind>(found - kScheduleWords.begin());
}

void JoinRows(Config& config) {
  constexpr std::int64_t kSide = 2;
  for (ModuleConfig& module : config.modules) {
    const bool joins = std::ranges::any_of(config.edges, [&](const EdgeConfig& edge) {
      return edge.from == module.name && edge.through &&
             edge.through->kind == ProjectorKind::kPixelShuffle;
    });
    module.model->JoinRows(joins ? kSide : 1);
  }
}

void SetChunks(Config& config) {
  const ScheduleKind kind = config.schedule.kind;
  const int otherwise = kind == ScheduleKind::kInterleaved ? 2 : 1;
  const bool has_any = kind == ScheduleKind::kInterleaved || kind == ScheduleKind::kCsv;
  const auto stated = static_cast<int>(config.schedule.chunks);
  const ModuleConfig* const sink = config.FindSink();
  for (ModuleConfig& module : config.modules) {
    module.chunks = &module == sink && has_any ? (stated > 0 ? stated : otherwise) : 1;
  }
}

Grid GridOf(const Config& config, const ModuleConfig& module) {
  if (!module.inline_in) return {module.layout, module.ranks, module.axis_order};
  const ModuleConfig* host = config.Find(*module.inline_in);
  if (host == nullptr || host->inline_in) {
    throw LayoutError("modules." + module.name +
                      ".inline_in: expected a module with ranks, got \"" + *module.inline_in +
                      "\"");
  }
  return {host->layout, host->ranks, host->axis_order};
}

static const ModuleConfig& EndOf(const Config& config, const std::string& name) {
  if (const ModuleConfig* module = config.Find(name)) return *module;
  throw LayoutError("edges: unknown module \"" + name + "\"");
}

Placement PlacementOfEdge(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig& from = EndOf(config, edge.from);
  const ModuleConfig& to = EndOf(config, edge.to);
  if (from.inline_in == edge.to) return Placement::kInline;
  return PlacementOf(GridOf(config, from), GridOf(config, to));
}

}  // namespace troupe
