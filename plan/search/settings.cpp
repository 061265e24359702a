// A planned job as a configuration.
#include <algorithm>
#include <numeric>

#include "layout/text.hpp"
#include "plan/search/space.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

struct PlacedModule {
  ModuleConfig* module = nullptr;
  Placement placement = Placement::kColocated;  ///< with the sink, or the sink itself
  const Layout* layout = nullptr;               ///< null: inline
  const Recompute* recompute = nullptr;
  bool offloads = false;
  bool on_own_devices = false;
};

/// The modules in the order of the file, with what the job says of them.
std::vector<PlacedModule> PlacedModules(Config& config, const PlannedJob& job) {
  const std::string sink = config.Sink().name;
  std::vector<PlacedModule> placed;
  std::size_t encoder = 0;
  for (ModuleConfig& module : config.modules) {
    if (module.name == sink) {
      placed.push_back({.module = &module,
                        .layout = &job.sink.layout,
                        .recompute = &job.sink.recompute,
                        .offloads = job.sink.offloads});
      continue;
    }
    const EncoderPoint& point = job.encoders.at(encoder++);
    const bool runs_inside = point.placement == Placement::kInline;
    // What runs inside is recomputed as it was configured.
    placed.push_back({.module = &module,
                      .placement = point.placement,
                      .layout = runs_inside ? nullptr : &point.layout,
                      .recompute = runs_inside ? &module.recompute : &point.recompute,
                      .on_own_devices = point.on_own_devices});
  }
  return placed;
}

std::string LayoutValue(const Layout& layout) {
  std::string text;
  const auto add = [&text](const char* name, int size) {
    if (size > 1)
      text += (text.empty() ? "" : ", ") + std::string(name) + " = " + std::to_string(size);
  };
  add("tp", layout.tp);
  add("cp", layout.cp);
  add("pp", layout.pp);
  add("dp", layout.dp);
  add("ep", layout.ep);
  add("etp", layout.etp);
  if (!layout.sp) text += (text.empty() ? "" : ", ") + std::string("sp = false");
  return text.empty() ? "{}" : "{ " + text + " }";
}

std::string RecomputeValue(const Recompute& recompute) {
  std::string text;
  for (std::size_t i = 0; i < kLayerPartWords.size(); ++i) {
    if (!recompute.Has(static_cast<LayerPart>(i))) continue;
    text += (text.empty() ? "\"" : ", \"") + kLayerPartWords[i] + "\"";
  }
  return "[" + text + "]";
}

std::string RanksValue(const std::vector<int>& ranks) {
  const std::string first = std::to_string(ranks.front());
  return ranks.size() == 1 ? "\"" + first + "\""
                           : "\"" + first + "-" + std::to_string(ranks.back()) + "\"";
}

/// The nodes that the loader makes of a number of nodes.
std::vector<ClusterNode> NodesOf(const PlannedJob& job, int ranks) {
  std::vector<ClusterNode> nodes;
  for (const int size : job.node_sizes) {
    nodes.push_back({"n" + std::to_string(nodes.size()), "", size});
  }
  if (nodes.empty()) nodes.push_back({"n0", "", ranks});
  return nodes;
}

/// As cluster.nodes takes them.
std::string NodesValue(const std::vector<ClusterNode>& nodes) {
  const auto size = std::ranges::count(nodes, nodes.front().devices, &ClusterNode::devices);
  if (size == std::ssize(nodes)) return std::to_string(nodes.size());
  return "[" +
         Listed(nodes, ", ",
                [](const ClusterNode& node) {
                  return "{devices = " + std::to_string(node.devices) + "}";
                }) +
         "]";
}

/// Microbatches under way that no edge may hold back.
int CreditsFor(const Config& config, const PlannedJob& job, const EdgeConfig& edge) {
  const int stages = job.sink.layout.pp * job.sink.chunks;
  const Layout& from = FindModule(config, edge.from).layout;
  return std::max(edge.credits, stages + from.pp);
}

}  // namespace

/// Gives modules that share no ranks with others those from `next` on. Returns the number of all.
static int GiveRanks(const std::vector<PlacedModule>& modules, int next) {
  for (const bool on_own_devices : {false, true}) {
    for (const PlacedModule& placed : modules) {
      if (placed.on_own_devices != on_own_devices || placed.layout == nullptr) continue;
      const bool apart = placed.placement == Placement::kDisjoint;
      placed.module->ranks.resize(static_cast<std::size_t>(placed.layout->num_ranks()));
      std::iota(placed.module->ranks.begin(), placed.module->ranks.end(), apart ? next : 0);
      if (apart) next += placed.layout->num_ranks();
    }
  }
  return next;
}

Config Applied(Config config, const PlannedJob& job) {
  const std::string sink = config.Sink().name;
  const std::vector<PlacedModule> modules = PlacedModules(config, job);
  for (const PlacedModule& placed : modules) {
    ModuleConfig& module = *placed.module;
    module.inline_in.reset();
    module.layers_per_stage.clear();
    module.axis_order = kDefaultAxisOrder;
    module.recompute = *placed.recompute;
    if (placed.layout != nullptr) module.offload_activations = {.automatic = placed.offloads};
    module.ranks.clear();
    if (placed.layout == nullptr) {
      module.inline_in = sink;
      module.layout = {};
      continue;
    }
    module.layout = *placed.layout;
  }
  config.cluster.ranks = GiveRanks(modules, job.sink.layout.num_ranks());
  config.cluster.nodes = NodesOf(job, config.cluster.ranks);
  config.cluster.ranks_per_gpu = 1;
  config.schedule.kind = job.sink.kind;
  config.schedule.chunks = job.sink.chunks > 1 ? job.sink.chunks : 0;
  config.schedule.micro_batch_size = job.sink.micro_batch_size;
  config.schedule.microbatches = job.sink.microbatches;
  config.schedule.window = job.sink.window;
  for (EdgeConfig& edge : config.edges) edge.credits = CreditsFor(config, job, edge);
  SetChunks(config);
  return config;
}

std::vector<std::string> SettingsOf(const Config& config, const PlannedJob& job) {
  const Config applied = Applied(config, job);
  std::vector<std::string> settings = {"cluster.ranks=" + std::to_string(applied.cluster.ranks)};
  if (applied.cluster.nodes.size() > 1 || config.cluster.nodes.size() > 1 ||
      config.cluster.nodes.front().name != applied.cluster.nodes.front().name ||
      !config.cluster.nodes.front().address.empty()) {
    settings.push_back("cluster.nodes=" + NodesValue(applied.cluster.nodes));
  }
  if (config.cluster.ranks_per_gpu != 1) settings.emplace_back("cluster.ranks_per_gpu=1");
  for (const ModuleConfig& module : applied.modules) {
    const std::string key = "modules." + module.name + ".";
    const ModuleConfig& before = FindModule(config, module.name);
    if (module.inline_in) {
      settings.push_back(key + "inline_in=\"" + *module.inline_in + "\"");
    } else {
      settings.push_back(key + "ranks=" + RanksValue(module.ranks));
      settings.push_back(key + "layout=" + LayoutValue(module.layout));
    }
    if (module.axis_order != before.axis_order) {
      settings.push_back(key + R"(axis_order=["tp", "cp", "dp", "pp"])");
    }
    if (module.recompute != before.recompute) {
      settings.push_back(key + "recompute=" + RecomputeValue(module.recompute));
    }
    if (module.offload_activations != before.offload_activations) {
      settings.push_back(key + "offload_activations=" +
                         (module.offload_activations.automatic ? "\"auto\"" : "\"none\""));
    }
    if (!before.layers_per_stage.empty()) settings.push_back(key + "layers_per_stage=\"balanced\"");
  }
  for (const EdgeConfig& edge : applied.edges) {
    if (edge.credits == config.FindEdge(edge.from, edge.to)->credits) continue;
    settings.push_back("edges." + edge.from + "." + edge.to +
                       ".credits=" + std::to_string(edge.credits));
  }
  const ScheduleConfig& schedule = applied.schedule;
  settings.push_back("schedule.kind=\"" + ToString(schedule.kind) + "\"");
  if (schedule.kind == ScheduleKind::kInterleaved) {
    settings.push_back("schedule.chunks=" + std::to_string(schedule.chunks));
  }
  settings.push_back("schedule.micro_batch_size=" + std::to_string(schedule.micro_batch_size));
  settings.push_back("schedule.microbatches=" + std::to_string(schedule.microbatches));
  if (schedule.window != config.schedule.window) {
    settings.push_back("schedule.window=" + (schedule.window == 0
                                                 ? std::string("\"step\"")
                                                 : std::to_string(schedule.window)));
  }
  return settings;
}

}  // namespace troupe
