#include "tests/parity/setup.hpp"

#include <stdexcept>
#include <utility>

#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Divided by 1, 2, 3 and 4, as everything that tensor parallelism cuts.
constexpr std::int64_t kProjectorHidden = 36;

ModuleConfig VisionModule() {
  ModuleConfig module;
  module.name = "vision";
  module.input = InputConfig{"image", "<image>"};
  module.optimizer.learning_rate = 1e-3;
  VitConfig vit;
  vit.image_size = 16;
  vit.patch_size = 8;
  vit.hidden = 24;
  vit.layers = 3;
  vit.heads = 4;
  vit.mlp_hidden = 48;
  vit.feature_layer = -2;
  module.model = vit;
  return module;
}

ModuleConfig DetailModule() {
  ModuleConfig module;
  module.name = "detail";
  module.input = InputConfig{"detail", "<detail>"};
  VitConfig vit;
  vit.image_size = 24;
  vit.patch_size = 8;
  vit.hidden = 12;
  vit.layers = 2;
  vit.heads = 4;
  vit.mlp_hidden = 24;
  module.model = vit;
  return module;
}

ModuleConfig LanguageModule(Layout layout) {
  ModuleConfig module;
  module.name = "language";
  module.layout = layout;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) module.ranks.push_back(rank);
  LlamaConfig llama;
  llama.vocab = 261;
  llama.hidden = 24;
  llama.layers = 3;
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.mlp_hidden = 48;
  llama.context = 96;
  module.model = llama;
  return module;
}

std::string TextOf(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += (text.empty() ? "" : "+") + std::to_string(number);
  }
  return text;
}

}  // namespace

Setup::Setup(Layout language) : name_("language " + ToString(language) + " alone") {
  config_.run.name = "parity";
  config_.run.precision = Precision::kFloat64;
  config_.run.seed = 11;
  config_.run.steps = 6;
  config_.schedule.micro_batch_size = 2;
  config_.schedule.microbatches = 3;
  config_.optimizer.learning_rate = 2e-3;
  config_.optimizer.min_learning_rate = 1e-4;
  config_.optimizer.warmup_steps = 2;
  config_.optimizer.weight_decay = 0.1;
  config_.optimizer.clip_norm = 0.05;  // low enough to act in every step
  config_.data.train = "data/shapes/train.json";
  config_.modules.push_back(LanguageModule(language));
  config_.cluster.ranks = language.num_ranks();
}

Setup::Setup(EncoderPlace vision, Layout language) : Setup(language) {
  AddEncoder(VisionModule(), vision);
  const ModuleConfig& module = Module("vision");
  name_ = "vision " + (module.inline_in ? "" : ToString(vision.layout) + " ") +
          ToString(vision.placement) + " to language " + ToString(language);
}

Setup::Setup(EncoderPlace vision, EncoderPlace detail, Layout language) : Setup(vision, language) {
  AddEncoder(DetailModule(), detail);
  config_.data.train = "data/shapes/train_two.json";
  const auto text = [](const EncoderPlace& place) {
    const std::string placement = ToString(place.placement);
    return place.placement == Placement::kInline ? placement
                                                 : ToString(place.layout) + " " + placement;
  };
  name_ = "vision " + text(vision) + " and detail " + text(detail) + " to language " +
          ToString(language);
}

void Setup::AddEncoder(ModuleConfig encoder, const EncoderPlace& place) {
  EdgeConfig edge;
  edge.from = encoder.name;
  edge.to = "language";
  edge.through = ProjectorConfig{.hidden = kProjectorHidden, .on = ProjectorEnd::kFrom};
  config_.edges.push_back(edge);
  encoder.layout = place.layout;
  if (place.placement == Placement::kInline) encoder.inline_in = "language";
  if (place.placement == Placement::kColocated) encoder.ranks = Module("language").ranks;
  if (place.placement == Placement::kDisjoint) {
    const int num_ranks = place.layout.num_ranks();
    for (int i = 0; i < num_ranks; ++i) encoder.ranks.push_back(config_.cluster.ranks++);
  }
  config_.modules.push_back(std::move(encoder));
}

ModuleConfig& Setup::Module(const std::string& name) {
  for (ModuleConfig& module : config_.modules) {
    if (module.name == name) return module;
  }
  throw std::invalid_argument(name_ + ": no module \"" + name + "\"");
}

Setup& Setup::Note(const std::string& note) {
  name_ += ", " + note;
  return *this;
}

Setup& Setup::Experts(std::int64_t count, std::int64_t per_token) {
  ModuleConfig& language = Module("language");
  language.As<LlamaConfig>().experts = {.count = count, .per_token = per_token, .hidden = 12};
  if (per_token == 1) language.As<LlamaConfig>().experts.softmax = RouterSoftmax::kBefore;
  language.moe = {.balance = Balance::kSample, .balance_coefficient = 0.3, .z_coefficient = 0.05};
  return Note(std::to_string(per_token) + " of " + std::to_string(count) + " experts");
}

Setup& Setup::SharedExpert() {
  ExpertsConfig& experts = Module("language").As<LlamaConfig>().experts;
  experts.shared_hidden = 18;
  experts.softmax = RouterSoftmax::kBefore;
  return Note("shared expert");
}

Setup& Setup::ExpertsEvery(std::int64_t layers) {
  Module("language").As<LlamaConfig>().experts.every = layers;
  return Note("in each layer " + std::to_string(layers));
}

Setup& Setup::BalancedByMicrobatch() {
  Module("language").moe.balance = Balance::kMicrobatch;
  return Note("balanced by microbatch");
}

Setup& Setup::Recipe() {
  OptimizerConfig& optimizer = config_.optimizer;
  optimizer.schedule = RateSchedule::kLinear;
  optimizer.warmup_steps = 0;
  optimizer.warmup_ratio = 0.2;
  optimizer.warmup_from_zero = true;
  optimizer.no_decay = {Trait::kNorm, Trait::kEmbedding};
  config_.edges.front().through->optimizer = {.learning_rate = 5e-3, .weight_decay = 0.7};
  config_.data.group_by = GroupBy::kModalityLength;
  return Note("recipe");
}

Setup& Setup::Frozen(const std::string& module) {
  Module(module).frozen = true;
  return Note("frozen " + module);
}

Setup& Setup::Adapters(const std::string& module, double dropout) {
  using enum LinearRole;
  const LinearRoles linears = Module(module).model->text()
                                  ? LinearRoles{kQuery, kKey, kValue, kOutput, kGate, kUp, kDown}
                                  : LinearRoles{kQuery, kKey, kValue, kOutput, kFc1, kFc2};
  Module(module).lora = LoraConfig{.rank = 3, .alpha = 12, .dropout = dropout, .linears = linears};
  return Note("adapters of " + module + (dropout > 0.0 ? " with dropout" : ""));
}

Setup& Setup::Recomputed(const std::string& module, Recompute what) {
  Module(module).recompute = what;
  std::string parts;
  for (std::size_t i = 0; i < kLayerPartWords.size(); ++i) {
    if (what.HasNumber(i)) parts += (parts.empty() ? "" : " and ") + kLayerPartWords[i];
  }
  return Note(parts + " of " + module + " recomputed");
}

Setup& Setup::ResultsOnHost(const std::string& module) {
  Module(module).offload_results = true;
  return Note("rows of " + module + " on the host");
}

/// Of all layers that "auto" chooses, or of `layers`.
Setup& Setup::ActivationsAway(const std::string& module, std::vector<std::int64_t> layers) {
  Module(module).offload_activations = {layers.empty(), std::move(layers)};
  return Note("activations of " + module + " away");
}

Setup& Setup::Offloaded(const std::string& module, Offload what) {
  Module(module).offload = what;
  return Note(module + (what == Offload::kState ? "'s state" : "'s parameters") + " offloaded");
}

Setup& Setup::Sharded(std::int64_t instances) {
  config_.optimizer.shard = OptimizerShard::kData;
  config_.optimizer.instances = instances;
  return Note("sharded states" +
              (instances > 1 ? " of " + std::to_string(instances) + " instances" : ""));
}

Setup& Setup::Sharded(const std::string& module, std::int64_t instances) {
  Module(module).optimizer.shard = OptimizerShard::kData;
  Module(module).optimizer.instances = instances;
  return Note(module + "'s state sharded" +
              (instances > 1 ? ", " + std::to_string(instances) + " instances" : ""));
}

Setup& Setup::Packed(std::int64_t window) {
  config_.data.packing = true;
  config_.data.pack_window = window;
  return Note("packs of " + std::to_string(window));
}

Setup& Setup::Gathered() {
  config_.schedule.context_exchange = ContextExchange::kGather;
  return Note("gathered keys");
}

Setup& Setup::WithoutSp(const std::string& module) {
  Module(module).layout.sp = false;
  return Note(module + " without sp");
}

Setup& Setup::FrozenProjector() {
  for (EdgeConfig& edge : config_.edges) edge.through->frozen = true;
  return Note("frozen projector");
}

Setup& Setup::ProjectorAtLanguage() {
  for (EdgeConfig& edge : config_.edges) edge.through->on = ProjectorEnd::kTo;
  return Note("projector at language");
}

Setup& Setup::NoProjector() {
  config_.edges.front().through.reset();
  return Note("no projector");
}

Setup& Setup::ClassToken() {
  Module("vision").As<VitConfig>().class_token = true;
  return Note("class token");
}

Setup& Setup::Tiles() {
  config_.data.train = config_.edges.size() > 1 ? "tests/oracle/tiled_rows_two.json"
                                                : "tests/oracle/tiled_rows.json";
  ImageRecipe& recipe = Module("vision").As<VitConfig>().image_recipe;
  recipe.fit = ImageFit::kAnyres;
  recipe.grids = kUsualGrids;
  return Note("tiles");
}

Setup& Setup::FeatureLayer(std::int64_t layer) {
  Module("vision").As<VitConfig>().feature_layer = layer;
  return Note("feature layer " + std::to_string(layer));
}

Setup& Setup::TiedHead() {
  Module("language").As<LlamaConfig>().tied_head = true;
  return Note("tied head");
}

Setup& Setup::NoClip() {
  config_.optimizer.clip_norm = 0.0;
  return Note("no clipping");
}

Setup& Setup::Layers(const std::string& module, std::int64_t layers) {
  ModelConfig* const model = &*Module(module).model;
  if (auto* const vit = dynamic_cast<VitConfig*>(model)) vit->layers = layers;
  if (auto* const llama = dynamic_cast<LlamaConfig*>(model)) llama->layers = layers;
  return Note(module + " of " + std::to_string(layers) + " layers");
}

Setup& Setup::LayersPerStage(const std::string& module, const std::vector<std::int64_t>& layers) {
  Module(module).layers_per_stage = layers;
  return Note(module + " layers " + TextOf(layers));
}

Setup& Setup::Heads(const std::string& module, std::int64_t heads) {
  Module(module).As<VitConfig>().heads = heads;
  return Note(module + " of " + std::to_string(heads) + " heads");
}

Setup& Setup::Heads(const std::string& module, std::int64_t heads, std::int64_t kv_heads) {
  auto& llama = Module(module).As<LlamaConfig>();
  llama.heads = heads;
  llama.kv_heads = kv_heads;
  return Note(module + " of " + std::to_string(heads) + "/" + std::to_string(kv_heads) + " heads");
}

Setup& Setup::PipelineFastest(const std::string& module) {
  Module(module).axis_order = {Axis::kPipeline, Axis::kData, Axis::kContext, Axis::kTensor};
  return Note(module + " pipeline fastest");
}

Setup& Setup::Ranks(const std::string& module, const std::vector<int>& ranks) {
  Module(module).ranks = ranks;
  return Note(module + " on ranks " + RanksText(ranks));
}

Setup& Setup::Credits(int credits) {
  for (EdgeConfig& edge : config_.edges) edge.credits = credits;
  return Note("credits " + std::to_string(credits));
}

Setup& Setup::Context(std::int64_t tokens) {
  Module("language").As<LlamaConfig>().context = tokens;
  return Note("context " + std::to_string(tokens));
}

Setup& Setup::Samples(std::int64_t micro_batch_size) {
  config_.schedule.micro_batch_size = micro_batch_size;
  return Note(std::to_string(micro_batch_size) + (micro_batch_size == 1 ? " sample" : " samples"));
}

Setup& Setup::Microbatches(std::int64_t microbatches) {
  config_.schedule.microbatches = microbatches;
  return Note(std::to_string(microbatches) + " microbatches");
}

Setup& Setup::Window(std::int64_t microbatches) {
  config_.schedule.window = microbatches;
  return Note("window " + std::to_string(microbatches));
}

Setup& Setup::Seed(std::uint64_t seed) {
  config_.run.seed = seed;
  return Note("seed " + std::to_string(seed));
}

Setup& Setup::Scheduled(const std::string& kind) {
  config_.schedule.kind = ScheduleKindOf(kind).value();
  SetChunks(config_);
  return Note(kind);
}

Setup& Setup::Gpipe() { return Scheduled("gpipe"); }
Setup& Setup::ZbH1() { return Scheduled("zb-h1"); }

Setup& Setup::Interleaved(int chunks) {
  config_.schedule.chunks = chunks;
  return Scheduled("interleaved").Note(std::to_string(chunks) + " chunks");
}

Setup& Setup::Csv(const std::string& orders) {
  config_.schedule.file = "orders.csv";
  config_.schedule.file_text = orders;
  return Scheduled("csv");
}

Setup& Setup::Quick() {
  quick_ = true;
  return *this;
}

Setup& Setup::Float32() {
  float32_ = true;
  return *this;
}

Setup& Setup::Portable() {
  portable_ = true;
  return *this;
}

}  // namespace troupe
