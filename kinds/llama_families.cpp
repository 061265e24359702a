// The families of language models in Hugging Face folders.
// Source of the defaults: the configuration classes of transformers 4.57.
#include <algorithm>
#include <array>

#include "kinds/llama.hpp"

namespace troupe {
namespace {

/// The values that transformers takes where config.json leaves a key out; 0: from other keys.
struct Family {
  std::string_view type;  ///< model_type
  std::int64_t vocab;
  std::int64_t mlp_hidden;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t context;
  std::int64_t hidden = 4'096;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  double norm_epsilon = 1e-6;
  double rope_base = 10'000.0;
  ExpertsConfig experts = {};
};

constexpr auto kFamilies = std::to_array<Family>({
    {"llama", 32'000, 11'008, 0, 0, 2'048},
    {"mistral", 32'000, 14'336, 8, 0, 131'072},
    {"qwen2", 151'936, 22'016, 32, 0, 32'768},
    {"qwen3", 151'936, 22'016, 32, 128, 32'768},
    {.type = "mixtral",
     .vocab = 32'000,
     .mlp_hidden = 14'336,
     .kv_heads = 8,
     .head_dim = 0,
     .context = 131'072,
     .norm_epsilon = 1e-5,
     .rope_base = 1e6,
     .experts = {.count = 8, .per_token = 2, .hidden = 14'336}},
    {.type = "qwen2_moe",
     .vocab = 151'936,
     .mlp_hidden = 5'632,
     .kv_heads = 16,
     .head_dim = 0,
     .context = 32'768,
     .hidden = 2'048,
     .layers = 24,
     .heads = 16,
     .experts = {.count = 60, .per_token = 4, .hidden = 1'408, .shared_hidden = 5'632}},
    {.type = "qwen3_moe",
     .vocab = 151'936,
     .mlp_hidden = 6'144,
     .kv_heads = 4,
     .head_dim = 0,
     .context = 32'768,
     .hidden = 2'048,
     .layers = 24,
     .experts = {.count = 128, .per_token = 8, .hidden = 768}},
});

constexpr std::string_view kMixtral = "mixtral";
constexpr std::string_view kQwen2Moe = "qwen2_moe";
constexpr std::string_view kQwen3Moe = "qwen3_moe";

}  // namespace

std::vector<std::string_view> LlamaFamilies() {
  std::vector<std::string_view> types;
  for (const Family& family : kFamilies) types.push_back(family.type);
  return types;
}

namespace {

double Required(const ForeignConfig& config, const std::string& key) {
  if (!config.Has(key)) config.Refuse(key, "expected a number, found none");
  return config.Number(key, 0);
}

/// `rope_parameters` of version 5, else `rope_scaling`.
void ReadRope(const ForeignConfig& config, RotaryConfig& rope) {
  auto part = config.Part("rope_parameters");
  const bool inside = part != nullptr && part->Has("rope_theta");
  rope.base = (inside ? *part : config).Number("rope_theta", rope.base);
  if (part == nullptr) part = config.Part("rope_scaling");
  if (part == nullptr) return;
  const std::string key = part->Has("type") ? "type" : "rope_type";  // as transformers prefers
  const std::string type = part->Word(key, "default");
  if (type == "default") return;
  if (type != "linear" && type != "llama3") {
    part->Refuse(key, "expected \"default\", \"linear\" or \"llama3\"; \"" + type + "\" is " +
                          kNotSupportedYet);
  }
  rope.factor = Required(*part, "factor");
  rope.scaling = RopeScaling::kLinear;
  if (type == "linear") return;
  rope.scaling = RopeScaling::kLlama3;
  rope.low_frequency = Required(*part, "low_freq_factor");
  rope.high_frequency = Required(*part, "high_freq_factor");
  Required(*part, "original_max_position_embeddings");
  rope.original_context = part->Integer("original_max_position_embeddings", 0);
}

/// Refuses what no key of ours describes.
void RefuseUnknown(const ForeignConfig& config) {
  const std::string activation = config.Word("hidden_act", "silu");
  if (activation != "silu") {
    config.Refuse("hidden_act", "expected \"silu\", got \"" + activation + "\"");
  }
  if (config.Flag("mlp_bias", false)) {
    config.Refuse("mlp_bias", "biases inside the MLP are " + std::string(kNotSupportedYet));
  }
}

AttentionBias ReadBias(const ForeignConfig& config, std::string_view type) {
  if (type == "qwen2") return AttentionBias::kQkv;
  if (type == kQwen2Moe) {
    return config.Flag("qkv_bias", true) ? AttentionBias::kQkv : AttentionBias::kNone;
  }
  if (type == "mistral" || type == kMixtral) return AttentionBias::kNone;
  return config.Flag("attention_bias", false) ? AttentionBias::kAll : AttentionBias::kNone;
}

/// A Mistral slides over 4,096 tokens unless its folder says null, a Mixtral if its folder has a number; a
/// Qwen only if asked to, and in the layers from max_window_layers on.
std::optional<std::int64_t> ReadWindow(const ForeignConfig& config, std::string_view type,
                                       std::int64_t layers) {
  const bool may_slide = type.starts_with("qwen");
  const bool states = type == kMixtral && config.Has("sliding_window");
  const bool slides = states || type == "mistral" ||
                      (may_slide && config.Flag("use_sliding_window", false) &&
                       config.Integer("max_window_layers", 28) < layers);
  if (!slides || config.IsNull("sliding_window")) return {};
  return config.Integer("sliding_window", 4'096);
}

/// `otherwise`: the family's experts, of which transformers takes what config.json leaves out.
ExpertsConfig ReadExperts(const ForeignConfig& config, std::string_view type,
                          const ExpertsConfig& otherwise) {
  if (otherwise.count == 0) return {};
  ExpertsConfig experts;
  experts.per_token = config.Integer("num_experts_per_tok", otherwise.per_token);
  if (type == kMixtral) {
    experts.count = config.Integer("num_local_experts", otherwise.count);
    experts.hidden = config.Integer("intermediate_size", otherwise.hidden);
    if (config.Number("router_jitter_noise", 0.0) != 0.0) {
      config.Refuse("router_jitter_noise", "expected 0; noise is " + std::string(kNotSupportedYet));
    }
    return experts;
  }
  experts.count = config.Integer("num_experts", otherwise.count);
  experts.hidden = config.Integer("moe_intermediate_size", otherwise.hidden);
  experts.every = config.Integer("decoder_sparse_step", 1);
  if (experts.every < 1) {
    config.Refuse("decoder_sparse_step",
                  "expected at least 1, got " + std::to_string(experts.every));
  }
  if (otherwise.shared_hidden > 0) {
    experts.shared_hidden =
        config.Integer("shared_expert_intermediate_size", otherwise.shared_hidden);
  }
  if (!config.Flag("norm_topk_prob", false)) experts.softmax = RouterSoftmax::kBefore;
  if (!config.IsEmptyList("mlp_only_layers")) {
    config.Refuse("mlp_only_layers", "expected none; a list is " + std::string(kNotSupportedYet) +
                                         ", only decoder_sparse_step");
  }
  return experts;
}

}  // namespace

void ReadForeignLlama(const ForeignConfig& config, const ForeignConfig* /*whole*/,
                      ModelConfig& model) {
  auto& llama = dynamic_cast<LlamaConfig&>(model);
  const std::string type = config.Word("model_type", "llama");
  const auto* family = std::ranges::find(kFamilies, type, &Family::type);
  if (family == kFamilies.end()) family = kFamilies.begin();  // LLaVA's own code writes "llava"
  RefuseUnknown(config);
  llama.vocab = config.Integer("vocab_size", family->vocab);
  llama.hidden = config.Integer("hidden_size", family->hidden);
  llama.layers = config.Integer("num_hidden_layers", family->layers);
  llama.heads = config.Integer("num_attention_heads", family->heads);
  const bool all = family->kv_heads == 0 || config.IsNull("num_key_value_heads");
  llama.kv_heads = config.Integer("num_key_value_heads", all ? llama.heads : family->kv_heads);
  if (family->head_dim > 0 || config.Has("head_dim")) {
    llama.head_dim = config.Integer("head_dim", family->head_dim);
  }
  llama.mlp_hidden = config.Integer("intermediate_size", family->mlp_hidden);
  llama.context = config.Integer("max_position_embeddings", family->context);
  llama.norm_epsilon = config.Number("rms_norm_eps", family->norm_epsilon);
  llama.tied_head = config.Flag("tie_word_embeddings", false);
  llama.attention_bias = ReadBias(config, type);
  llama.head_norms = type.starts_with("qwen3");
  llama.experts = ReadExperts(config, type, family->experts);
  llama.rope.base = family->rope_base;
  llama.sliding_window = ReadWindow(config, type, llama.layers);
  ReadRope(config, llama.rope);
}

namespace {

/// The family and its class in transformers.
std::pair<std::string, std::string> FamilyOf(const LlamaConfig& llama) {
  if (llama.experts.count > 0) {
    if (llama.head_norms) return {std::string(kQwen3Moe), "Qwen3MoeForCausalLM"};
    if (llama.experts.shared_hidden > 0) return {std::string(kQwen2Moe), "Qwen2MoeForCausalLM"};
    return {std::string(kMixtral), "MixtralForCausalLM"};
  }
  if (llama.head_norms) return {"qwen3", "Qwen3ForCausalLM"};
  if (llama.attention_bias == AttentionBias::kQkv) return {"qwen2", "Qwen2ForCausalLM"};
  if (llama.sliding_window) return {"mistral", "MistralForCausalLM"};
  return {"llama", "LlamaForCausalLM"};
}

/// Throws ModelFolderError if the family has no such experts.
void WriteExpertKeys(const LlamaConfig& llama, std::string_view type, ForeignValues& values) {
  const ExpertsConfig& experts = llama.experts;
  if (experts.count == 0) return;
  const auto refuse = [](const std::string& what) {
    throw ModelFolderError("config.json: no family of Hugging Face has experts with " + what);
  };
  values.emplace_back("num_experts_per_tok", experts.per_token);
  if (type == kMixtral) {
    if (llama.attention_bias != AttentionBias::kNone)
      refuse("attention_bias and neither head_norms nor a shared expert");
    if (experts.softmax != RouterSoftmax::kAfter)
      refuse("router_softmax = \"before\" and neither head_norms nor a shared expert");
    if (experts.every != 1)
      refuse("expert_every above 1 and neither head_norms nor a shared expert");
    values.emplace_back("num_local_experts", experts.count);
    return;
  }
  if (type == kQwen3Moe && experts.shared_hidden > 0) refuse("head_norms and a shared expert");
  if (type == kQwen2Moe && llama.attention_bias == AttentionBias::kAll) {
    refuse("attention_bias = \"all\" and a shared expert");
  }
  values.emplace_back("num_experts", experts.count);
  values.emplace_back("moe_intermediate_size", experts.hidden);
  values.emplace_back("decoder_sparse_step", experts.every);
  values.emplace_back("mlp_only_layers", std::vector<std::string>());
  values.emplace_back("norm_topk_prob", experts.softmax == RouterSoftmax::kAfter);
  if (type == kQwen2Moe) {
    values.emplace_back("shared_expert_intermediate_size", experts.shared_hidden);
  }
}

void AddRope(const RotaryConfig& rope, ForeignValues& values) {
  values.emplace_back("rope_theta", rope.base);
  if (rope.scaling == RopeScaling::kNone) {
    values.emplace_back("rope_scaling", nullptr);
    return;
  }
  const bool llama3 = rope.scaling == RopeScaling::kLlama3;
  values.emplace_back("rope_scaling.rope_type", llama3 ? "llama3" : "linear");
  values.emplace_back("rope_scaling.factor", rope.factor);
  if (!llama3) return;
  values.emplace_back("rope_scaling.low_freq_factor", rope.low_frequency);
  values.emplace_back("rope_scaling.high_freq_factor", rope.high_frequency);
  values.emplace_back("rope_scaling.original_max_position_embeddings", rope.original_context);
}

}  // namespace

ForeignValues WriteForeignLlama(const ModelConfig& model, const ModelConfig* source) {
  const auto& llama = dynamic_cast<const LlamaConfig&>(model);
  const auto [type, name] = FamilyOf(llama);
  if (llama.head_norms && llama.attention_bias == AttentionBias::kQkv) {
    throw ModelFolderError(
        "config.json: no family of Hugging Face has norms of heads and biases of q, k "
        "and v alone; the nearest is " +
        type);
  }
  ForeignValues values = {
      {"architectures", std::vector{name}},
      {"model_type", type},
      {"vocab_size", llama.vocab},
      {"hidden_size", llama.hidden},
      {"intermediate_size", type == kMixtral ? llama.experts.hidden : llama.mlp_hidden},
      {"num_hidden_layers", llama.layers},
      {"num_attention_heads", llama.heads},
      {"num_key_value_heads", llama.kv_heads},
      {"head_dim", llama.head_size()},
      {"hidden_act", "silu"},
      {"rms_norm_eps", llama.norm_epsilon},
      {"tie_word_embeddings", llama.tied_head},
  };
  // A run on shorter samples does not shorten the model's context.
  const auto* const before = dynamic_cast<const LlamaConfig*>(source);
  values.emplace_back("max_position_embeddings",
                      before == nullptr ? llama.context : std::max(llama.context, before->context));
  if (type == "llama") {
    values.emplace_back("attention_bias", llama.attention_bias == AttentionBias::kAll);
    values.emplace_back("mlp_bias", false);
  }
  if (type == kQwen2Moe) {
    values.emplace_back("qkv_bias", llama.attention_bias == AttentionBias::kQkv);
  }
  WriteExpertKeys(llama, type, values);
  if (type.starts_with("qwen3")) {
    values.emplace_back("attention_bias", llama.attention_bias == AttentionBias::kAll);
  }
  if (llama.sliding_window) {
    values.emplace_back("sliding_window", *llama.sliding_window);
  } else if (type == kMixtral) {
    values.emplace_back("sliding_window", nullptr);
  }
  AddRope(llama.rope, values);
  return values;
}

std::string SpellForeignLlama(const ModelConfig& model, const std::string& name) {
  return FamilyOf(dynamic_cast<const LlamaConfig&>(model)).first == kMixtral ? MixtralName(name)
                                                                             : name;
}

}  // namespace troupe
