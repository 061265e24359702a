#include "cli/describe_memory.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "layout/ranks_text.hpp"
#include "modules/torch/compute.hpp"
#include "plan/memory_needs.hpp"
#include "plan/unit_samples.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

using Row = std::vector<std::string>;

/// Bytes by rank, `less` off each.
std::size_t Most(const std::map<int, std::size_t>& needs,
                 const std::map<int, std::size_t>& less = {}) {
  std::size_t most = 0;
  for (const auto& [rank, bytes] : needs) {
    const auto found = less.find(rank);
    most = std::max(most, bytes - (found == less.end() ? 0 : found->second));
  }
  return most;
}

/// Names of the nodes, and the place of each rank in its node.
struct Home {
  std::string node;
  int gpu = 0;
  friend auto operator<=>(const Home&, const Home&) = default;
};

/// The GPUs of all ranks, in the order of the ranks.
std::vector<std::pair<Home, std::vector<int>>> RanksOfGpus(const ClusterConfig& cluster) {
  std::vector<std::pair<Home, std::vector<int>>> gpus;
  int rank = 0;
  for (const ClusterNode& node : cluster.nodes) {
    for (int i = 0; i < node.devices; ++i, ++rank) {
      const Home home = {node.name, GpuOf(cluster, rank)};
      if (gpus.empty() || gpus.back().first != home) gpus.push_back({home, {}});
      gpus.back().second.push_back(rank);
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

}  // namespace

std::string MemoryTable(const JobPlan& plan) {
  const std::vector<StageNeed> stages = StageNeeds(plan, AttentionHere());
  if (stages.empty()) return {};
  std::vector<Row> rows = {
      {"stage", "ranks", "parameters", "gradients", "optimizer", "activations", "per rank"}};
  for (const StageNeed& stage : stages) {
    const StageMemory& memory = stage.memory;
    rows.push_back({plan.graph().StageName(stage.stage), RanksText(stage.ranks),
                    Bytes(memory.parameters + memory.rounded), Bytes(memory.gradients),
                    Bytes(memory.optimizer), Bytes(stage.activations), Bytes(stage.per_rank())});
  }
  const std::map<int, std::size_t> needs = RankNeeds(stages);
  std::size_t sum = 0;
  for (const auto& [rank, bytes] : needs) sum += bytes;
  return Columns(rows) + "estimated: " + Bytes(Most(needs)) + " on the fullest rank, " +
         Bytes(sum) + " in all, without the memory of the process itself\n";
}

std::string OffloadText(const JobPlan& plan) {
  const std::vector<StageNeed> stages = StageNeeds(plan, AttentionHere());
  std::string text;
  for (const StageNeed& stage : stages) {
    if (stage.memory.offloaded == 0) continue;
    text += "offloaded: " + Bytes(stage.memory.offloaded) + " of " +
            plan.graph().StageName(stage.stage) + " on each of its ranks, to host memory\n";
  }
  for (const ModuleConfig& module : plan.config().modules) {
    const bool leaves = OffloadOf(plan.config(), module) != Offload::kNone;
    if (!leaves || module.model->computes()) continue;
    text += "offloaded: nothing of " + module.name +
            ", a synthetic module, which holds no state: nothing is saved\n";
  }
  if (stages.empty() || text.empty()) return text;
  const std::map<int, std::size_t> needs = RankNeeds(stages);
  const std::map<int, std::size_t> savings = RankSavings(stages);
  const std::size_t most = Most(needs);
  const std::size_t most_with = Most(needs, savings);
  if (most_with < most) return text + "with that " + Bytes(most_with) + " on the fullest rank\n";
  const std::size_t best = Most(savings);
  if (best == 0) return text + "with that still " + Bytes(most) + ": " + WhyNothing(stages) + "\n";
  return text + "with that still " + Bytes(most) +
         " on the fullest rank, which it does not help; " + Bytes(best) +
         " less on the rank that it helps most\n";
}

std::string GpuTable(const JobPlan& plan) {
  const ClusterConfig& cluster = plan.config().cluster;
  if (cluster.backend != Backend::kCuda) return {};
  const std::vector<StageNeed> stages = StageNeeds(plan, AttentionHere());
  std::map<int, std::size_t> needs = RankNeeds(stages);
  const std::map<int, std::size_t> savings = RankSavings(stages);
  for (auto& [rank, bytes] : needs) bytes -= savings.at(rank);
  std::vector<Row> rows = {{"node", "GPU", "ranks", "estimated"}};
  for (const auto& [home, ranks] : RanksOfGpus(cluster)) {
    rows.push_back({home.node, std::to_string(home.gpu),
                    RanksText(ranks) + (ranks.size() > 1 ? " share it" : ""),
                    stages.empty() ? "-" : Bytes(SumOver(ranks, needs))});
  }
  return "\n" + Columns(rows) +
         "GPUs as CUDA_VISIBLE_DEVICES numbers them on each node; estimates are sums over their "
         "ranks, with\noffloading, without CUDA's own memory, NCCL's buffers, and temporary "
         "tensors of a pass\n" +
         (cluster.processes == ProcessesPer::kDevice && cluster.ranks_per_gpu > 1
              ? "ranks that share a GPU are separate processes, whose collectives go through "
                "pinned memory of\nthe host; with cluster.processes = \"node\" they are copies on "
                "the GPU\n"
              : "");
}

}  // namespace troupe
