#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/describe.hpp"
#include "app/work.hpp"
#include "checkpoint/weights_folder.hpp"
#include "cli/commands.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "data/epochs.hpp"
#include "data/rows/data_error.hpp"
#include "layout/at.hpp"
#include "layout/text.hpp"
#include "modules/device/backend.hpp"
#include "plan/memory.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/reduced_job.hpp"
#include "plan/stage_parts.hpp"
#include "plan/unit_samples.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

using Row = std::vector<std::string>;

std::size_t Most(const std::map<int, std::size_t>& bytes_by_rank) {
  std::size_t most = 0;
  for (const auto& [rank, bytes] : bytes_by_rank) most = std::max(most, bytes);
  return most;
}

std::map<int, std::size_t> NeedsWithOffloading(const std::vector<StageNeed>& stages) {
  std::map<int, std::size_t> needs = RankNeeds(stages);
  for (const auto& [rank, bytes] : RankSavings(stages)) needs.at(rank) -= bytes;
  return needs;
}

struct GpuRanks {
  std::string node;
  int gpu = 0;  ///< its number on the node
  std::vector<int> ranks;
};

/// The GPUs of all ranks, in the order of the ranks.
std::vector<GpuRanks> RanksOfGpus(const ClusterConfig& cluster) {
  std::vector<GpuRanks> gpus;
  int rank = 0;
  for (const ClusterNode& node : cluster.nodes) {
    for (int i = 0; i < node.devices; ++i, ++rank) {
      const int gpu = GpuOf(cluster, rank);
      const bool known = !gpus.empty() && gpus.back().node == node.name && gpus.back().gpu == gpu;
      if (!known) gpus.push_back({node.name, gpu, {}});
      gpus.back().ranks.push_back(rank);
    }
  }
  return gpus;
}

std::size_t SumOver(const std::vector<int>& ranks, const std::map<int, std::size_t>& needs) {
  std::size_t sum = 0;
  for (const int rank : ranks) {
    if (const auto need = needs.find(rank); need != needs.end()) sum += need->second;
  }
  return sum;
}

/// Why offloaded state lowers the peak of no rank.
std::string WhyNothing(const std::vector<StageNeed>& stages) {
  std::size_t gone = 0;
  for (const StageNeed& stage : stages) gone += stage.gone_at_restore;
  return gone == 0 ? "it comes back while the module it feeds still holds all its activations "
                     "(offload_ahead), so nothing is saved"
                   : "its ranks hold nothing that it would make room for, so nothing is saved";
}

/// One line per stage and rank set: estimated bytes. Empty if no module computes.
std::string MemoryTable(const JobPlan& plan, const std::vector<StageNeed>& stages) {
  if (stages.empty()) return {};
  std::vector<Row> rows = {{"stage", "ranks", "parameters", "gradients", "optimizer", "activations",
                            "passes", "per rank"}};
  for (const StageNeed& stage : stages) {
    const StageMemory& memory = stage.memory;
    const HeldByPasses most = stage.most();
    rows.push_back({plan.graph().StageName(stage.stage), RanksText(stage.ranks),
                    Bytes(memory.parameters + memory.rounded), Bytes(memory.gradients),
                    Bytes(memory.optimizer), Bytes(most.activations + stage.rows),
                    Bytes(most.workspace + stage.transit), Bytes(stage.per_rank())});
  }
  const std::map<int, std::size_t> needs = RankNeeds(stages);
  std::size_t sum = 0;
  for (const auto& [rank, bytes] : needs) sum += bytes;
  return Columns(rows) + "estimated: " + Bytes(Most(needs)) + " on the fullest rank, " +
         Bytes(sum) + " in all, without the memory of the process itself\n";
}

bool Trains(const Config& config, const ModuleConfig& module) {
  for (int pp = 0; pp < module.num_stages(); ++pp) {
    if (StageTrains(config, module.name, pp)) return true;
  }
  return false;
}

/// A line for each module whose replicas divide the state of the optimizer.
std::string DividedText(const Config& config) {
  std::string text;
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in || !Trains(config, module)) continue;
    const StateShardings shardings = ShardingsOf(config, module);
    if (shardings.others.shards == 1 && shardings.experts.shards == 1) continue;
    const auto add = [&](const std::string& whose, const StateSharding& sharding) {
      text += "optimizer state of " + whose + ": ";
      if (sharding.shards == 1) {
        text += "not divided\n";
        return;
      }
      text += "divided by " + std::to_string(sharding.shards) + " ranks";
      if (sharding.instances > 1) {
        text += ", in each of " + std::to_string(sharding.instances) + " instances";
      }
      text += "\n";
    };
    add(module.name, shardings.others);
    if (module.model->num_experts() > 0) add(module.name + "'s experts", shardings.experts);
  }
  return text;
}

/// A line for each module with experts: which ranks of its first stage exchange tokens.
std::string ExpertsText(const JobPlan& plan) {
  std::string text;
  for (const ModulePlan& module : plan.modules()) {
    const std::int64_t experts = module.config->model->num_experts();
    if (experts == 0) continue;
    const Layout& layout = module.grid.layout();
    std::vector<std::string> groups;
    for (int first = 0; first < layout.stage_ranks(); first += layout.expert_group()) {
      std::vector<int> ranks;
      for (int i = 0; i < layout.expert_group(); ++i) {
        ranks.push_back(module.grid.RankAt(layout.AtStageRank(first + i, 0)));
      }
      groups.push_back(RanksText(ranks));
    }
    const auto size_of = [&](ExpertAxis axis) {
      return ToString(axis) + " " + std::to_string(layout.size(axis));
    };
    text +=
        "experts of " + module.config->name + ": " + std::to_string(experts / layout.ep) + " of " +
        std::to_string(experts) + " on a rank; " + Listed(kExpertAxisOrder, ", ", size_of) +
        ", fastest first; " +
        (layout.expert_group() == 1 ? "no rank sends tokens to another\n"
                                    : "ranks that exchange tokens: " + Listed(groups, "; ") + "\n");
  }
  return text;
}

/// The bytes that each offloading module saves on its ranks, or why it saves none. Empty without
/// offloading.
std::string OffloadText(const JobPlan& plan, const std::vector<StageNeed>& stages) {
  std::string text;
  for (const StageNeed& stage : stages) {
    if (stage.memory.offloaded == 0) continue;
    text += "offloaded: " + Bytes(stage.memory.offloaded) + " of " +
            plan.graph().StageName(stage.stage) + " on each of its ranks, to host memory\n";
  }
  for (const ModuleConfig& module : plan.config().modules) {
    if (OffloadOf(plan.config(), module) == Offload::kNone || module.model->computes()) continue;
    text += "offloaded: nothing of " + module.name +
            ", a synthetic module, which holds no state: nothing is saved\n";
  }
  if (stages.empty() || text.empty()) return text;
  const std::size_t most = Most(RankNeeds(stages));
  const std::size_t most_with = Most(NeedsWithOffloading(stages));
  if (most_with < most) return text + "with that " + Bytes(most_with) + " on the fullest rank\n";
  const std::size_t best = Most(RankSavings(stages));
  if (best == 0) return text + "with that still " + Bytes(most) + ": " + WhyNothing(stages) + "\n";
  return text + "with that still " + Bytes(most) +
         " on the fullest rank, which it does not help; " + Bytes(best) +
         " less on the rank that it helps most\n";
}

/// The copies that checkpoints are written from, and the mirrors. Empty if there are none.
std::string SnapshotText(const JobPlan& plan, const ProcessPlan& processes,
                         const std::vector<StageNeed>& stages) {
  const Config& config = plan.config();
  const std::map<int, std::size_t> needs = SnapshotNeeds(stages);
  if (needs.empty()) return {};
  const std::string key = config.checkpoint.async && config.checkpoint.periodic()
                              ? "checkpoint.async"
                              : "checkpoint.replicas";
  std::string text = "copies for checkpoints in host memory: " + Bytes(Most(needs)) +
                     " on the rank with most (" + key + ")\n";
  std::size_t sent = 0;
  std::size_t held = 0;
  for (const auto& [process, need] : MirrorNeeds(plan, processes, stages)) {
    sent = std::max(sent, need.sent);
    held = std::max(held, need.held);
  }
  if (config.checkpoint.replicas == 0) return text;
  if (processes.num_processes() == 1) {
    return text +
           "mirrors in host memory: none in a job of one process; for N nodes: --set "
           "cluster.nodes=N (checkpoint.replicas)\n";
  }
  const std::int64_t every = config.checkpoint.mirror_every;
  const std::string often = every == 1 ? "step" : Counted(every, "step");
  const std::int64_t mirrors =
      std::min<std::int64_t>(config.checkpoint.replicas, processes.num_processes() - 1);
  return text + "mirrors in host memory, with --restarts: " + std::to_string(mirrors) +
         " of each file, at most " + Bytes(held) + " in a process; " +
         (sent > 0 ? "each sends at most " + Bytes(sent) + " every " + often
                   : "replicas make them, and nothing is sent") +
         " (checkpoint.replicas)\n";
}

/// What waits in host memory for its pass. Empty if nothing does.
std::string WaitingText(const JobPlan& plan, const std::vector<StageNeed>& stages) {
  std::string text;
  const auto add = [&](const char* what, std::size_t bytes, const StageNeed& stage) {
    if (bytes == 0) return;
    text += std::string(what) + " in host memory: " + Bytes(bytes) + " of " +
            plan.graph().StageName(stage.stage) + " on each of its ranks\n";
  };
  for (const StageNeed& stage : stages) {
    add("activations", stage.away, stage);
    add("rows of a window", stage.rows_away, stage);
  }
  return text;
}

/// One line per GPU of backend "cuda": its node, its number there, its ranks, and the sum of their
/// estimates. Empty for other backends.
std::string GpuTable(const JobPlan& plan, const std::vector<StageNeed>& stages) {
  const ClusterConfig& cluster = plan.config().cluster;
  if (cluster.backend != Backend::kCuda) return {};
  const std::map<int, std::size_t> needs = NeedsWithOffloading(stages);
  std::vector<Row> rows = {{"node", "GPU", "ranks", "estimated"}};
  for (const auto& [node, gpu, ranks] : RanksOfGpus(cluster)) {
    rows.push_back({node, std::to_string(gpu),
                    RanksText(ranks) + (ranks.size() > 1 ? " share it" : ""),
                    stages.empty() ? "-" : Bytes(SumOver(ranks, needs))});
  }
  return "\n" + Columns(rows) +
         "GPUs as CUDA_VISIBLE_DEVICES numbers them on each node; estimates are sums over their "
         "ranks, with\noffloading, without CUDA's own memory, NCCL's buffers, and what the "
         "allocator cannot use\n" +
         (cluster.processes == ProcessesPer::kDevice && cluster.ranks_per_gpu > 1
              ? "ranks that share a GPU are separate processes, whose collectives go through "
                "pinned memory of\nthe host; with cluster.processes = \"node\" they are copies on "
                "the GPU\n"
              : "");
}

/// A line of the keys that a file of a folder leaves out.
std::string DefaultedText(const std::string& file, const std::vector<DefaultedKey>& keys) {
  if (keys.empty()) return {};
  return "  not stated in " + file + ": " +
         Listed(keys, ", ", [](const DefaultedKey& key) { return key.key + " = " + key.value; }) +
         "\n";
}

/// A line for each module that starts from a folder, and the keys that its files leave out.
std::string FolderText(const Config& config, const std::vector<ReadFolder>& folders) {
  std::string text;
  for (const ReadFolder& folder : folders) {
    text += folder.part + " starts from " + folder.path + "\n";
    text += DefaultedText("config.json", folder.defaulted);
    const std::filesystem::path images(folder.images.file);
    text += DefaultedText(images.filename().string(), folder.images.defaulted);
  }
  for (const std::string& name : RandomNewlines(config)) {
    text += name + " starts from random values: the projector's folder has none\n";
  }
  return text.empty() ? text : text + "\n";
}

/// The steps that run.epochs means, or why they are not known here. Empty without run.epochs.
std::string StepsText(const Config& config) {
  if (!config.run.epochs) return {};
  const std::string epochs = Formatted("run.epochs = %g: ", *config.run.epochs);
  try {
    const auto source = std::dynamic_pointer_cast<RowSource>(OpenInputs(config));
    const std::int64_t places = source->places_per_epoch();
    const char* const unit = config.data.packing ? "pack" : "sample";
    return epochs + Counted(WithSteps(config, places).run.steps, "step") + ", " +
           Counted(places, config.data.packing ? "pack" : "row") + " in steps of " +
           Counted(config.global_batch(), unit) + "\n\n";
  } catch (const DataError& error) {
    return epochs + "the number of steps is not known: " + error.lines().front() + "\n\n";
  }
}

/// The job as it would go on without `lost` processes. Throws LaunchError if there is no such process,
/// process 0 is among them, or the others are too few.
ReducedJob JobWithout(const Config& whole, const std::vector<std::string>& lost) {
  const ProcessPlan planned(whole.cluster);
  const std::set<std::string> lost_names(lost.begin(), lost.end());
  std::set<std::string> found;
  std::vector<ProcessId> present;
  for (const PlannedProcess& process : planned.processes()) {
    const std::string& node = whole.cluster.nodes[At(process.node)].name;
    found.insert({process.name, node});
    if (!lost_names.contains(process.name) && !lost_names.contains(node)) {
      present.push_back(process.process);
    }
  }
  for (const std::string& name : lost) {
    if (found.contains(name)) continue;
    throw LaunchError("--lost: the job has no process or node " + name + ", but " +
                      planned.Names());
  }
  if (present.empty() || present.front() != 0) {
    throw LaunchError("--lost: no job goes on without " + planned.Of(0).name + ", its process 0");
  }
  Reduction reduction = ReduceJob(whole, planned, present);
  if (!reduction.job) {
    throw LaunchError("--lost: the others cannot go on: " + reduction.why_not);
  }
  if (!lost.empty()) {
    std::cout << "without " << Listed(std::vector(lost_names.begin(), lost_names.end())) << ": "
              << ReductionText(whole, reduction.job->config) << "\n\n";
  }
  return *std::move(reduction.job);
}

struct CheckArguments {
  ConfigArguments config;
  std::string explain;
  std::vector<std::string> lost;
  bool print_config = false;
};

int Check(const CheckArguments& arguments) {
  const LoadedConfig loaded = LoadConfig(arguments.config.path, arguments.config.overrides);
  if (!arguments.explain.empty()) {
    try {
      std::cout << Explain(loaded, arguments.explain);
      return kExitDone;
    } catch (const std::invalid_argument& e) {
      std::cerr << e.what() << '\n';
      return kExitBadInput;
    }
  }
  if (arguments.print_config) {
    std::cout << loaded.resolved_toml;
    return kExitDone;
  }
  WarnOfRemarks(loaded);
  CheckWeights(loaded.config);
  const ReducedJob job = JobWithout(loaded.config, arguments.lost);
  const Config& config = job.config;
  const JobPlan plan(config);
  const std::string processes = ProcessTable(plan, job.processes, nullptr);
  const std::string routes = RouteTable(plan);
  // Nothing is refused because of these estimates.
  const std::vector<StageNeed> stages = StageNeeds(plan, job.processes);
  std::cout << LayoutTable(plan) << '\n'
            << processes << (processes.empty() ? "" : "\n") << StageTable(plan) << '\n'
            << routes << (routes.empty() ? "" : "\n") << FolderText(config, loaded.folders)
            << StepsText(config) << MemoryTable(plan, stages)
            << SnapshotText(plan, job.processes, stages) << ExpertsText(plan) << DividedText(config)
            << WaitingText(plan, stages) << OffloadText(plan, stages) << GpuTable(plan, stages);
  const std::string missing = MissingFor(config.cluster.backend);
  if (!missing.empty()) std::cout << "cannot be run by this build: " << missing << '\n';
  return kExitDone;
}

}  // namespace

void AddCheck(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "check",
      "Show where a configuration would run; starts nothing.\n"
      "Prints the layout of every module, the stage graph with the distance to the sink,\n"
      "the routes of every edge, a memory estimate, and with backend \"cuda\" the GPU of every\n"
      "rank. Nothing is refused because of an estimate. Mistakes are printed all at once\n"
      "as file:line:column. Data files are opened only to count the steps of run.epochs.\n"
      "Exit code: 0 it fits together, 2 it does not.");
  auto arguments = std::make_shared<CheckArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option(
          "--explain", arguments->explain,
          "only print the value of this key, the file and line that set it, if any, and its\n"
          "meaning; of a table: all its keys")
      ->type_name("KEY");
  verb->add_option("--lost", arguments->lost,
                   "show the job as it would go on without these nodes or processes\n"
                   "(cluster.elastic)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_flag("--print-config", arguments->print_config,
                 "only print every value, defaults included, as one TOML file");
  SetCommand(*verb, command, [arguments] { return Check(*arguments); });
}

}  // namespace troupe
