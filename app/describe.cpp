#include "app/describe.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "layout/at.hpp"
#include "layout/colocated_shares.hpp"
#include "layout/route.hpp"
#include "layout/text.hpp"
#include "plan/layer_split.hpp"
#include "plan/unit_samples.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

using Row = std::vector<std::string>;

std::string LayersOf(const ModuleConfig& module, int pp) {
  if (!module.model->split_layers()) return "-";
  const Interval layers = SplitLayers(module)[At(pp)];
  if (layers.empty()) return "none";
  return std::to_string(layers.begin) + "-" + std::to_string(layers.end - 1);
}

/// Empty for the default schedule.
std::string ScheduleText(const Config& config) {
  if (config.schedule.kind == ScheduleKind::k1F1B) return "";
  std::string text = "schedule " + ToString(config.schedule.kind);
  if (!config.schedule.file.empty()) text += " from " + config.schedule.file;
  for (const ModuleConfig& module : config.modules) {
    if (module.chunks == 1) continue;
    text += ", " + std::to_string(module.chunks) + " stages on each rank of " + module.name;
  }
  return text + "\n";
}

/// Returns whether every GPU that has ranks has ranks_per_gpu of them, on every node.
bool RanksFillGpus(const ClusterConfig& cluster) {
  const auto fill = [&](int ranks) { return ranks % cluster.ranks_per_gpu == 0; };
  return cluster.nodes.empty() ? fill(cluster.ranks)
                               : std::ranges::all_of(cluster.nodes, fill, &ClusterNode::devices);
}

/// The GPUs and the precision of a run; empty for the defaults.
std::string BackendText(const Config& config) {
  std::string text;
  if (config.cluster.backend == Backend::kCuda) {
    const int gpus = GpusNeeded(config.cluster);
    text = "on " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") +
           " of a node, ranks on each: " + (RanksFillGpus(config.cluster) ? "" : "at most ") +
           std::to_string(config.cluster.ranks_per_gpu) + "\n";
  }
  if (config.run.precision == Precision::kBFloat16) {
    text += "in bfloat16, with parameters and gradients in float32\n";
  }
  return text;
}

std::string InParentheses(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "(rank " : "(ranks ") + RanksText(ranks) + ")";
}

std::string IntervalText(const Interval& i) {
  return i.size() == 1 ? std::to_string(i.begin)
                       : std::to_string(i.begin) + "-" + std::to_string(i.end - 1);
}

/// The samples of the step's first microbatch that each source replica of the edge holds.
struct SourceSide {
  Assignment first;
  std::string text = "of each microbatch";  ///< for the line above the table
};

SourceSide SourceOf(const JobPlan& plan, const EdgePlan& edge) {
  const Grid& from = plan.ModuleOf(edge.from).grid;
  const Grid& to = plan.ModuleOf(edge.to).grid;
  const std::int64_t samples = plan.config().samples_per_microbatch();
  if (edge.placement != Placement::kColocated) return {EvenAssignment(samples, from.layout().dp)};
  const ColocatedShares shares(from, to);
  SourceSide side{shares.Microbatch(samples, 0)};
  const std::int64_t microbatches = plan.config().schedule.microbatches;
  bool all_same = true;
  for (std::int64_t m = 1; m < std::min(microbatches, shares.period()) && all_same; ++m) {
    all_same = shares.Microbatch(samples, m) == side.first;
  }
  if (all_same) return side;
  side.text = "of a step's first microbatch; of all " + std::to_string(microbatches) +
              ", the replicas encode ";
  const auto text_of = [](std::int64_t count) { return std::to_string(count); };
  side.text += Listed(shares.Counts(samples, 0, microbatches), ", ", text_of) + " samples";
  return side;
}

/// ", cp 2 -> 1"; empty where both are 1.
std::string ContextText(const Layout& from, const Layout& to) {
  if (from.cp == 1 && to.cp == 1) return "";
  return ", cp " + std::to_string(from.cp) + " -> " + std::to_string(to.cp);
}

std::string UnitText(const JobPlan& plan, const ModulePlan& module) {
  if (!module.colocated_encoder) return "microbatch";
  const Units units = module.units.In(plan.config().schedule.microbatches);
  return "window of " + std::to_string(units.microbatches_each);
}

}  // namespace

std::string LayoutTable(const JobPlan& plan) {
  std::vector<Row> rows = {{"module", "kind", "layout", "ranks", "works per", "trains"}};
  for (const ModuleConfig& module : plan.config().modules) {
    const auto own = std::ranges::find(plan.modules(), module.name,
                                       [](const ModulePlan& m) { return m.config->name; });
    const bool placed = own != plan.modules().end();
    rows.push_back({module.name, std::string(module.model.kind().word),
                    placed ? ToString(module.layout) : "inline in " + *module.inline_in,
                    placed ? RanksText(own->grid.ranks()) : "", placed ? UnitText(plan, *own) : "",
                    module.frozen ? "no"
                    : module.lora ? "adapters"
                                  : "yes"});
  }
  const Config& config = plan.config();
  return Columns(rows) + "global batch " + std::to_string(config.global_batch()) + " = " +
         Counted(config.schedule.micro_batch_size, config.data.packing ? "pack" : "sample") +
         " x dp " +
         std::to_string(config.global_batch() / config.schedule.micro_batch_size /
                        config.schedule.microbatches) +
         " x " + std::to_string(config.schedule.microbatches) +
         (config.schedule.microbatches == 1 ? " microbatch\n" : " microbatches\n") +
         ScheduleText(config) + BackendText(config);
}

std::string ProcessTable(const JobPlan& plan, const ProcessPlan& processes, const Roster* roster) {
  if (processes.num_processes() == 1) return "";
  std::vector<Row> rows = {{"process", "ranks", "stages"}};
  if (roster != nullptr) rows.front().insert(rows.front().end(), {"address", "pid"});
  for (const PlannedProcess& process : processes.processes()) {
    std::set<int> stages;
    for (const int rank : process.ranks) {
      if (plan.lock_steps().count(rank) == 0) continue;
      for (const auto& [stage, shard] : plan.ShardsOn(rank)) stages.insert(stage);
    }
    const auto name_of = [&](int stage) { return plan.graph().StageName(stage); };
    Row row = {process.name, RanksText(process.ranks), Listed(stages, ", ", name_of)};
    if (roster != nullptr) {
      const Hello& hello = roster->members[At(process.process)];
      row.insert(row.end(), {hello.address.host, std::to_string(hello.pid)});
    }
    rows.push_back(std::move(row));
  }
  return Columns(rows);
}

std::string StageTable(const JobPlan& plan) {
  std::vector<Row> rows = {
      {"stage", "layers", "to sink", "in flight", "backward", "waits for", "feeds"}};
  const StageGraph& graph = plan.graph();
  for (const StagePlan& stage : plan.stages()) {
    const StageNode& node = graph.stages()[At(stage.stage)];
    const ModulePlan& module = plan.ModuleOf(stage.module);
    std::vector<std::string> in;
    if (stage.reads_data) in.emplace_back("data");
    for (const int link : node.in) in.push_back(graph.StageName(graph.links()[At(link)].from));
    std::vector<std::string> out;
    for (const int link : node.out) out.push_back(graph.StageName(graph.links()[At(link)].to));
    rows.push_back({graph.StageName(stage.stage), LayersOf(*module.config, stage.pp),
                    std::to_string(graph.SinkDistance(stage.stage)), std::to_string(stage.kept),
                    stage.runs_backward ? (stage.trains ? "yes" : "for its inputs") : "no",
                    Listed(in), out.empty() ? "(sink)" : Listed(out)});
  }
  return Columns(rows);
}

std::string RouteTable(const JobPlan& plan) {
  std::ostringstream text;
  const std::int64_t samples = plan.config().samples_per_microbatch();
  for (const EdgePlan& edge : plan.edges()) {
    const Grid& from = plan.ModuleOf(edge.from).grid;
    const Grid& to = plan.ModuleOf(edge.to).grid;
    const auto [source, text_of_source] = SourceOf(plan, edge);
    text << edge.name << "  " << ToString(edge.placement) << ", dp " << from.layout().dp << " -> "
         << to.layout().dp << ContextText(from.layout(), to.layout())
         << (edge.carries_gradient ? "" : ", no gradient comes back") << "; " << text_of_source
         << ":\n";
    const std::vector<std::int64_t> one_row(static_cast<std::size_t>(samples), 1);
    const Route route = MakeRoute(one_row, source, EvenAssignment(samples, to.layout().dp));
    std::vector<Row> rows;
    const auto add = [&](int replica, const std::string& share) -> Row& {
      return rows.emplace_back(Row{"  replica " + std::to_string(replica),
                                   InParentheses(from.Leaders(from.layout().pp - 1, replica)),
                                   share});
    };
    std::set<int> senders;
    for (const Transfer& t : route.transfers) {
      senders.insert(t.source);
      Row& row = add(t.source, "samples " + IntervalText(t.samples));
      row.push_back("-> replica " + std::to_string(t.destination));
      row.push_back(InParentheses(to.Leaders(0, t.destination)));
    }
    for (int replica = 0; replica < static_cast<int>(source.size()); ++replica) {
      if (!senders.contains(replica)) add(replica, "no samples");
    }
    text << Columns(rows);
  }
  return text.str();
}

}  // namespace troupe
