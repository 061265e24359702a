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
};

constexpr auto kFamilies = std::to_array<Family>({
    {"llama", 32'000, 11'008, 0, 0, 2'048},
    {"mistral", 32'000, 14'336, 8, 0, 131'072},
    {"qwen2", 151'936, 22'016, 32, 0, 32'768},
    {"qwen3", 151'936, 22'016, 32, 128, 32'768},
});

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
  if (type == "mistral") return AttentionBias::kNone;
  return config.Flag("attention_bias", false) ? AttentionBias::kAll : AttentionBias::kNone;
}

/// A Mistral slides over 4,096 tokens unless its folder says null; a Qwen only if asked to, and in
/// the layers from max_window_layers on.
std::optional<std::int64_t> ReadWindow(const ForeignConfig& config, std::string_view type,
                                       std::int64_t layers) {
  const bool may_slide = type == "qwen2" || type == "qwen3";
  const bool slides = type == "mistral" || (may_slide && config.Flag("use_sliding_window", false) &&
                                            config.Integer("max_window_layers", 28) < layers);
  if (!slides || config.IsNull("sliding_window")) return {};
  return config.Integer("sliding_window", 4'096);
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
  llama.hidden = config.Integer("hidden_size", 4'096);
  llama.layers = config.Integer("num_hidden_layers", 32);
  llama.heads = config.Integer("num_attention_heads", 32);
  const bool all = family->kv_heads == 0 || config.IsNull("num_key_value_heads");
  llama.kv_heads = config.Integer("num_key_value_heads", all ? llama.heads : family->kv_heads);
  if (family->head_dim > 0 || config.Has("head_dim")) {
    llama.head_dim = config.Integer("head_dim", family->head_dim);
  }
  llama.mlp_hidden = config.Integer("intermediate_size", family->mlp_hidden);
  llama.context = config.Integer("max_position_embeddings", family->context);
  llama.norm_epsilon = config.Number("rms_norm_eps", 1e-6);
  llama.tied_head = config.Flag("tie_word_embeddings", false);
  llama.attention_bias = ReadBias(config, type);
  llama.head_norms = type == "qwen3";
  llama.sliding_window = ReadWindow(config, type, llama.layers);
  ReadRope(config, llama.rope);
}

namespace {

/// The family and its class in transformers.
std::pair<std::string, std::string> FamilyOf(const LlamaConfig& llama) {
  if (llama.head_norms) return {"qwen3", "Qwen3ForCausalLM"};
  if (llama.attention_bias == AttentionBias::kQkv) return {"qwen2", "Qwen2ForCausalLM"};
  if (llama.sliding_window) return {"mistral", "MistralForCausalLM"};
  return {"llama", "LlamaForCausalLM"};
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
  ForeignValues values = {
      {"architectures", std::vector{name}},
      {"model_type", type},
      {"vocab_size", llama.vocab},
      {"hidden_size", llama.hidden},
      {"intermediate_size", llama.mlp_hidden},
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
  if (type == "qwen3") {
    values.emplace_back("attention_bias", llama.attention_bias == AttentionBias::kAll);
  }
  if (type == "mistral") values.emplace_back("sliding_window", *llama.sliding_window);
  AddRope(llama.rope, values);
  return values;
}

}  // namespace troupe
