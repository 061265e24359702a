#include "configs/schema_keys.hpp"

namespace troupe {

static std::vector<std::string> KindWords() {
  std::vector<std::string> words;
  for (const ModuleKind* kind : Kinds()) words.emplace_back(kind->word);
  return words;
}

static KeyEntry KindEntry() {
  static const std::string kMeaning = [] {
    std::string text;
    for (const ModuleKind* kind : Kinds()) {
      text += (text.empty() ? "\"" : "; \"") + std::string(kind->word) +
              "\": " + std::string(kind->meaning);
    }
    return text + ".";
  }();
  KeyEntry entry("kind", &ModuleConfig::model, kRequired, KindWords(), kMeaning.c_str());
  for (const ModuleKind* kind : Kinds()) {
    Put(entry, Others{kind->word, kind->other_words});
    Put(entry, Others{kind->word, kind->similar_words, false});
  }
  return entry;
}

/// Adds the keys of a module's layout and of its experts' losses.
static void AddLayoutKeys(std::vector<KeySpec>& keys) {
  using enum ValueType;
  using enum KeyRole;
  // Greater ones soon make gradients overflow float32.
  static constexpr Range kCoefficient{.low = 0, .high = 1e6};
  Add(keys, {.table = "modules.*.layout", .role = kLayout},
      {{"tp", &Layout::tp, Range{1, kMaxRanks}, "Tensor parallel: parts of every layer."},
       {"cp", &Layout::cp, Range{1, kMaxRanks},
        "Context parallel: parts of a sample's tokens, or of an image's patches."},
       {"pp", &Layout::pp, Range{1, kMaxRanks}, "Pipeline parallel: stages."},
       {"dp", &Layout::dp, Range{1, kMaxRanks},
        "Data parallel: replicas. tp*cp*pp*dp equals the number of ranks."},
       {"sp", &Layout::sp, kRounding,
        "Sequence parallel: with tp above 1, the rows between the linear layers of a layer are cut "
        "over tp, too. Off for comparison (docs/parallelism.md)."},
       {"ep", &Layout::ep, Range{1, kMaxRanks},
        "Expert parallel: parts into which the experts are divided. ep*etp divides tp*cp*dp, and "
        "is a multiple or a divisor of tp*cp."},
       {"etp", &Layout::etp, Range{1, kMaxRanks},
        "Expert tensor parallel: parts of every expert."}});
  Add(keys, {"modules.*.moe", KindsWhere([](const ModelConfig& model) {
               return model.may_have_experts();
             })},
      {{"balance", &MoeConfig::balance, Words{"sample", "microbatch"}, kTuning,
        "The tokens over which experts are to get equally many: those of each \"sample\", or those "
        "of a \"microbatch\" of all replicas in lock step, which depends on the layout "
        "(docs/parallelism.md)."},
       {"balance_coefficient", &MoeConfig::balance_coefficient, kCoefficient, kTuning,
        "Factor of the load-balancing loss; 0 for none."},
       {"z_coefficient", &MoeConfig::z_coefficient, kCoefficient, kTuning,
        "Factor of the router's z-loss; 0 for none."}});
}

std::vector<KeySpec> ModuleKeys() {  // NOLINT(readability-function-size): a table
  using enum ValueType;
  using enum KeyRole;
  const KindSet reads_field =
      KindsWhere([](const ModelConfig& model) { return model.field() != nullptr; });
  const KindSet has_layers =
      KindsWhere([](const ModelConfig& model) { return model.split_layers().has_value(); });
  const KindSet computes = KindsWhere([](const ModelConfig& model) { return model.computes(); });
  std::vector<KeySpec> keys;
  Add(keys, {"model"},
      {{"from", &WholeModelConfig::from, kWeights, kExecution,
        "\"hf:DIR\": the Hugging Face folder of a LLaVA (docs/models.md). A module that feeds "
        "another is its vision encoder, the other its language model."}});
  Add(keys, {"modules.*"},
      {KindEntry(),
       {"weights", &ModuleConfig::weights, kWeights, computes, kExecution,
        "\"hf:DIR\": it starts from the tensors in this Hugging Face folder (docs/models.md), "
        "whose config.json gives `kind` and all keys of the kind that are not stated here; those "
        "of "
        "images are in preprocessor_config.json. \"run:DIR\": from the parameters of the module of "
        "the "
        "same name in this run, or in a checkpoint of one; it has to state the same keys. Unless "
        "given, from random values."},
       {"ranks", &ModuleConfig::ranks, kRanks, kPlacement, kExecution,
        "The devices it runs on, in this order: \"4-7\", \"0-2,5\" or a list. Required unless "
        "`inline_in` is given."},
       {"axis_order", &ModuleConfig::axis_order, kAxes, kPlacement, kLayout,
        "Which direction of the layout varies fastest along `ranks`, first to last."},
       {"inline_in", &ModuleConfig::inline_in, reads_field, kLayout,
        "The language model in whose first stage it runs, with that module's layout. Clears "
        "inherited ranks and layout."},
       {"layers_per_stage", &ModuleConfig::layers_per_stage, has_layers, kStages, kPlacement,
        Unit{"layers"}, kLayout,
        "Layers of each pipeline stage; with feature_layer, the layers up to it are counted."},
       {"frozen", &ModuleConfig::frozen, "Whether its parameters stay as they are."},
       {"recompute", &ModuleConfig::recompute, has_layers, kLayerPartWords, kSomeWords, kExecution,
        Others{"full", {"all", "layer", "layers", "block", "true"}},
        "What of each layer is computed again in its backward instead of being kept: \"attention\" "
        "q, k, v and their norms, \"mlp.up\" the wide rows of the MLP or of experts, \"mlp\" all "
        "of it, "
        "\"full\" all of the layer but its input. The numbers are the same to the last bit."},
       {"offload_activations", &ModuleConfig::offload_activations, has_layers,
        ValueType::kLayerList, kAddedLater, kExecution,
        "Layers whose activations are in host memory between a forward and its backward, so that "
        "others have room on the device: \"auto\": all but the last layer before a loss, or their "
        "numbers, from 0. The numbers are the same to the last bit."},
       {"offload", &ModuleConfig::offload, Words{"none", "parameters", "state"}, kExecution,
        "What of a colocated encoder leaves its devices while the module it feeds computes: "
        "\"parameters\", or \"state\": gradients and both moments too. The numbers are the same to "
        "the last bit."},
       {"offload_ahead", &ModuleConfig::offload_ahead, Range{0, kMaxCount}, Unit{"microbatches"},
        kExecution,
        "How many gradients of a window each replica of the module it feeds still owes when the "
        "state begins to come back: more hide the copy, fewer lower the peak. Unless given, half "
        "the stages of that module."},
       {"offload_results", &ModuleConfig::offload_results, kAddedLater, kExecution,
        "Whether the rows that a colocated encoder has made for a window wait in host memory, each "
        "microbatch's until its forward. Of use on GPUs; with backend \"cpu\" they are there "
        "anyway."}});
  AddLayoutKeys(keys);
  Add(keys, {"modules.*.input"},
      {{"field", &InputConfig::field, "The sample's field it reads."},
       {"placeholder", &InputConfig::placeholder, "The word in the text that its rows replace."}});
  Add(keys, {"modules.*.lora", has_layers},
      {{"rank", &LoraConfig::rank, kCount, "Width of an adapter."},
       {"alpha", &LoraConfig::alpha, kPositive, Otherwise{"twice the rank"},
        "What an adapter gives is multiplied by alpha / rank."},
       {"dropout", &LoraConfig::dropout, Range{.low = 0, .high = 1, .below_high = true}, kTuning,
        "Share of an adapter's inputs that a training step takes as 0; the others are divided by 1 "
        "- "
        "dropout. The choice depends on seed, step, sample, token, layer and feature, not on "
        "layouts."},
       {"linears", &LoraConfig::linears, kLinearRoleWords, kWords,
        "The linear layers with an adapter: \"q\", \"k\", \"v\" and \"o\" of attention, and of the "
        "MLP \"gate\", \"up\" and \"down\", or \"fc1\" and \"fc2\" of an encoder."}});
  AddOverrideKeys(keys, "modules.*.optimizer");
  Add(keys, {"modules.*.optimizer"},
      {{"shard", &OptimizerOverride::shard, Words{"none", "data"}, Otherwise{"as in `[optimizer]`"},
        kLayout, "As in `[optimizer]`."},
       {"instances", &OptimizerOverride::instances, kCount, Otherwise{"as in `[optimizer]`"},
        kLayout, "As in `[optimizer]`."}});
  return keys;
}

void AddOverrideKeys(std::vector<KeySpec>& keys, std::string_view table) {
  using enum KeyRole;
  Add(keys, {table},
      {{"learning_rate", &OptimizerOverride::learning_rate, kPositive, kTuning,
        "As in `[optimizer]`."},
       {"min_learning_rate", &OptimizerOverride::min_learning_rate, kNotNegative, kTuning,
        "As in `[optimizer]`."},
       {"weight_decay", &OptimizerOverride::weight_decay, kNotNegative, kTuning,
        "As in `[optimizer]`."}});
}

std::vector<KeySpec> EdgeKeys() {
  using enum ValueType;
  using enum KeyRole;
  std::vector<KeySpec> keys;
  Add(keys, {"edges.*.*"},
      {{"from", &EdgeConfig::from, kRequired, "The module that emits the rows."},
       {"to", &EdgeConfig::to, kRequired, "The module that takes them."},
       {"credits", &EdgeConfig::credits, kCount, Unit{"microbatches"}, kExecution,
        "Microbatches that may be under way on this edge."}});
  Add(keys, {"edges.*.*.through"},
      {{"kind", &ProjectorConfig::kind, kRequired, Words{"linear", "mlp2", "pixel_shuffle"},
        Others{"mlp2", {"mlp", "mlp2x_gelu"}},
        "\"linear\": one linear layer; \"mlp2\": two with a GELU between them; "
        "\"pixel_shuffle\": the encoder joins each square of 2 x 2 patches to one row, and a "
        "LayerNorm precedes the two layers."},
       {"weights", &ProjectorConfig::weights, kWeights, kExecution,
        "\"hf:DIR\": it starts from the projector in this Hugging Face folder of a whole LLaVA. "
        "\"run:DIR\": from that of the same edge in this run. Unless given, from random values."},
       {"hidden", &ProjectorConfig::hidden, kCountOrNone,
        "Width between two linear layers; a multiple of tp of the module it runs on. Only "
        "\"linear\" has none."},
       {"on", &ProjectorConfig::on, Words{"from", "to"},
        "At which end it runs, and so with whose layout; whose optimizer values it has unless "
        "`optimizer` states its own."},
       {"frozen", &ProjectorConfig::frozen, "Whether its parameters stay as they are."}});
  AddOverrideKeys(keys, "edges.*.*.through.optimizer");
  return keys;
}

}  // namespace troupe
