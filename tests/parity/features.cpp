#include "tests/parity/features.hpp"

#include <algorithm>

#include "data/row_source.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

using Features = std::set<std::string>;

void AddSizes(const ModuleConfig& module, Features& features) {
  const std::string role = module.model->emits_rows() ? "encoder" : "language";
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kPipeline, Axis::kData}) {
    features.insert(role + " " + ToString(axis) + " " + std::to_string(module.layout.size(axis)));
  }
  if (module.layout.tp > 1) {
    features.insert(module.layout.sp ? "sequence parallel" : "tp without sp");
  }
  if (!module.layers_per_stage.empty()) features.insert(role + " stated layers");
  if (module.axis_order != kDefaultAxisOrder) features.insert("axis order");
  for (std::size_t i = 1; i < module.ranks.size(); ++i) {
    if (module.ranks[i] != module.ranks[i - 1] + 1) features.insert("ranks not contiguous");
  }
}

void AddExperts(const ModuleConfig& module, const ExpertsConfig& experts, Features& features) {
  features.insert("ep " + std::to_string(module.layout.ep));
  features.insert("etp " + std::to_string(module.layout.etp));
  features.insert("experts with tp " + std::to_string(module.layout.tp));
  features.insert(module.moe.balance == Balance::kSample ? "balanced by sample"
                                                         : "balanced by microbatch");
  features.insert(experts.softmax == RouterSoftmax::kBefore ? "softmax before the choice"
                                                            : "softmax after the choice");
  if (experts.shared_hidden > 0) features.insert("shared expert");
  if (experts.every > 1) features.insert("layers with and without experts");
  if (module.layout.lock_step_replicas() > 1) features.insert("replicas in lock step");
}

void AddModule(const Config& config, const ModuleConfig& module, Features& features) {
  if (!module.inline_in) AddSizes(module, features);
  const StateSharding sharding = ShardingsOf(config, module).others;
  if (sharding.shards > 1) {
    features.insert("sharded states");
    if (sharding.instances > 1) features.insert("sharded states of instances");
    if (module.model->num_experts() > 0 && ShardingsOf(config, module).experts.shards > 1) {
      features.insert("sharded states of experts");
    }
    if (module.offload != Offload::kNone) features.insert("sharded states offloaded");
  }
  const auto* const vit = dynamic_cast<const VitConfig*>(&*module.model);
  if (vit && vit->class_token) features.insert("class token");
  if (module.offload_activations.automatic) features.insert("activations away");
  if (!module.offload_activations.layers.empty()) features.insert("activations of layers away");
  for (std::size_t i = 0; i < kLayerPartWords.size(); ++i) {
    if (module.recompute.HasNumber(i)) features.insert("recomputed " + kLayerPartWords[i]);
  }
  const auto* const llama = dynamic_cast<const LlamaConfig*>(&*module.model);
  if (!llama) return;
  if (module.layout.tp > llama->kv_heads) features.insert("tp above kv_heads");
  if (llama->tied_head) {
    features.insert(module.layout.pp > 1 ? "tied head over stages" : "tied head");
  }
  if (config.edges.empty()) features.insert("no encoder");
  if (llama->experts.count > 0) AddExperts(module, llama->experts, features);
}

void AddFrozen(const Config& config, const EdgeConfig& edge, Features& features) {
  const bool vision = config.Find(edge.from)->frozen;
  const bool language = config.Find(edge.to)->frozen;
  if (vision && language) {
    features.insert("only the projector trains");
  } else if (vision || language) {
    features.insert(vision ? "frozen vision" : "frozen language");
  }
  if (edge.through && edge.through->frozen) features.insert("frozen projector");
  if (HasNewline(config, edge)) features.insert("tiles " + ToString(PlacementOfEdge(config, edge)));
}

void AddAdapters(const Config& config, Features& features) {
  for (const ModuleConfig& module : config.modules) {
    if (!module.lora) continue;
    const std::string role = module.model->text() ? "language" : "encoder";
    features.insert("adapters of " + role + (module.lora->dropout > 0.0 ? " with dropout" : ""));
  }
}

void AddFan(const Config& config, const EdgeConfig& edge, Features& features) {
  const int from = GridOf(config, *config.Find(edge.from)).layout().dp;
  const int to = GridOf(config, *config.Find(edge.to)).layout().dp;
  features.insert("fan " + std::to_string(from) + " to " + std::to_string(to));
  if (from > config.samples_per_microbatch()) features.insert("more encoder replicas than samples");
}

void AddContext(const Config& config, const EdgeConfig& edge, Placement placement,
                Features& features) {
  const int from = config.Find(edge.from)->layout.cp;
  const int to = config.Find(edge.to)->layout.cp;
  if (from > 1 && to > 1) features.insert("cp at both ends");
  if (from > 1 && to > 1 && from != to) features.insert("other cp at the other end");
  if (from == 1 && to == 1) return;
  const bool gathers = config.schedule.context_exchange == ContextExchange::kGather;
  features.insert(gathers ? "gathered keys" : "ring of keys");
  if (placement != Placement::kDisjoint) features.insert(ToString(placement) + " with cp");
}

void AddEdge(const Config& config, const EdgeConfig& edge, Features& features) {
  const Placement placement = PlacementOfEdge(config, edge);
  AddContext(config, edge, placement, features);
  features.insert(ToString(placement));
  AddFrozen(config, edge, features);
  if (!edge.through) features.insert("no projector");
  if (edge.through && edge.through->on == ProjectorEnd::kTo) features.insert("projector at to");
  if (edge.credits == 1 && placement == Placement::kDisjoint) features.insert("credits 1");
  if (placement != Placement::kInline) AddFan(config, edge, features);
  if (placement != Placement::kColocated) return;
  features.insert("colocated with language pp " + std::to_string(config.Find(edge.to)->layout.pp));
  const std::int64_t window = config.schedule.window;
  features.insert("window " + (window == 0 ? "step" : std::to_string(window)));
  if (window > 0 && config.schedule.microbatches % window != 0) features.insert("uneven window");
}

void AddPlacements(const Config& config, Features& features) {
  if (config.edges.size() < 2) return;
  std::set<Placement> placements;
  for (const EdgeConfig& edge : config.edges) placements.insert(PlacementOfEdge(config, edge));
  features.insert("two encoders");
  if (placements.contains(Placement::kColocated) && placements.contains(Placement::kDisjoint)) {
    features.insert("mixed placements");
  }
}

/// What one microbatch brings to the replicas of the language model.
void AddMicrobatch(const Config& config, RowSource& source, const Round& round,
                   std::int64_t microbatch, Features& features) {
  const ModuleConfig& language = config.Sink();
  std::set<bool> any_rows;
  for (int dp = 0; dp < language.layout.dp; ++dp) {
    const auto inputs = source.Load(language.name, dp, round, microbatch);
    const auto samples = std::ssize(inputs->table.samples) * language.layout.dp;
    if (samples > config.samples_per_microbatch() * 2) features.insert("several samples in a pack");
    for (const auto& [encoder, table] : inputs->expected) {
      any_rows.insert(table.num_rows() > 0);
      const std::set<std::int64_t> counts(table.rows.begin(), table.rows.end());
      if (counts.size() > 1) features.insert("rows differ between samples");
    }
  }
  if (any_rows.size() == 2) features.insert("replica without images");
}

}  // namespace

Features FeaturesOf(const Config& config, std::int64_t steps) {
  Features features;
  for (const ModuleConfig& module : config.modules) AddModule(config, module, features);
  for (const EdgeConfig& edge : config.edges) AddEdge(config, edge, features);
  AddPlacements(config, features);
  AddAdapters(config, features);
  features.insert(ToString(config.schedule.kind));
  features.insert(config.optimizer.clip_norm > 0.0 ? "clipping" : "no clipping");
  if (config.data.group_by != GroupBy::kNone) features.insert("recipe");
  if (config.data.packing) features.insert("packs");
  RowSource source(config);
  for (std::int64_t step = 0; step < steps; ++step) {
    const Round round{.number = step,
                      .step = step,
                      .microbatches = config.schedule.microbatches,
                      .place = step * config.global_batch(),
                      .group = config.global_batch()};
    for (std::int64_t m = 0; m < round.microbatches; ++m) {
      AddMicrobatch(config, source, round, m, features);
    }
  }
  return features;
}

}  // namespace troupe
