// Llama-style language model: RMSNorm, rotary positions, grouped key and value heads, a gated MLP.
// It reads text. Rows of encoders replace their placeholders.
//
// Keys distinguish the families: Llama and Mistral (the defaults), Llama 3.1 (rope_scaling),
// Qwen2 (attention_bias "qkv"), Qwen3 (head_norms, head_dim); with experts, Mixtral, Qwen2-MoE and
// Qwen3-MoE.
#pragma once

#include "kinds/experts.hpp"
#include "kinds/kind.hpp"

namespace troupe {

extern const ModuleKind kLlama;

/// The linears of attention that have a bias: none, those into it, or all four.
enum class AttentionBias { kNone, kQkv, kAll };

/// How rotary frequencies change for a longer context.
enum class RopeScaling { kNone, kLinear, kLlama3 };

/// Rotary positions: element pair i of a head turns by t * f(base^(-2i / head_dim)) at token t.
struct RotaryConfig {
  double base = 10'000.0;
  RopeScaling scaling = RopeScaling::kNone;  ///< f: identity, / factor, or by wave length
  double factor = 1.0;
  // llama3: wave lengths below original / high stay, those above original / low are divided by
  // factor, and those between are blended.
  double low_frequency = 1.0;
  double high_frequency = 4.0;
  std::int64_t original_context = 8192;
  friend bool operator==(const RotaryConfig&, const RotaryConfig&) = default;
};

struct LlamaConfig : ModelOf<LlamaConfig, kLlama> {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;                  ///< divides heads
  std::int64_t mlp_hidden = 0;                ///< of layers without experts
  std::int64_t context = 0;                   ///< tokens per sample, image tokens included
  std::optional<std::int64_t> head_dim = {};  ///< unset: hidden / heads
  AttentionBias attention_bias = AttentionBias::kNone;
  bool head_norms = false;  ///< RMSNorm of each head of q and k
  RotaryConfig rope = {};
  ExpertsConfig experts = {};
  bool tied_head = false;
  /// The tokens that a token sees, itself included; unset: all before it. At least `context`.
  std::optional<std::int64_t> sliding_window = {};
  double norm_epsilon = 1e-5;

  std::int64_t head_size() const { return head_dim.value_or(heads > 0 ? hidden / heads : 0); }
  std::int64_t query_width() const { return heads * head_size(); }
  std::int64_t key_width() const { return kv_heads * head_size(); }

  /// Whether some layer has no experts.
  bool has_mlps() const { return experts.LayersIn({0, layers}) < layers; }
  /// The width inside all experts together that a token goes through.
  std::int64_t active_hidden() const {
    return experts.per_token * experts.hidden + experts.shared_hidden;
  }

  void FillDefaults(const std::function<bool(const char* key)>& stated) override;
  void Check(ModuleCheck& check) const override;
  std::string WhyNotFrom(const ModelConfig& source) const override;
  std::optional<TextInput> text() const override { return TextInput{vocab, context}; }
  bool ReadsData(bool first_stage, bool last_stage, bool) const override {
    return first_stage || last_stage;
  }
  std::int64_t row_width() const override { return hidden; }
  bool emits_rows() const override { return false; }
  bool takes_rows() const override { return true; }
  std::optional<Layers> split_layers() const override { return Layers{layers}; }
  void KeepLayers(std::int64_t most) override {
    // One of each kind at least.
    layers = std::min(layers, std::max(most, experts.count > 0 ? experts.every : 0));
  }
  bool AllowsTp(int tp) const override {
    return heads % tp == 0 && (!has_mlps() || mlp_hidden % tp == 0) &&
           experts.shared_hidden % tp == 0 && kv_heads > 0 &&
           (kv_heads % tp == 0 || tp % kv_heads == 0);
  }
  std::int64_t shared_kv_heads() const override { return kv_heads; }
  bool cuts_rows() const override { return true; }
  bool cuts_all_rows() const override { return true; }
  RowCut CutOver(int cp) const override { return {RowCut::By::kContext, cp}; }
  std::int64_t most_context_parts() const override { return context; }
  bool may_have_experts() const override { return true; }
  std::int64_t num_experts() const override { return experts.count; }
  bool AllowsEtp(int etp) const override { return experts.hidden % etp == 0; }
  bool sums_over_tp() const override { return head_norms || experts.count > 0; }
  bool ties_embedding() const override { return tied_head; }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  void ListWork(const StagePlace& stage, const StepShape& shape, const std::string& name,
                WorkList& work) const override;
  std::int64_t KeptElements(const StagePlace& stage, const RankWork& work) const override;
  LayerSpace SpaceElements(const StagePlace& stage, const RankWork& work) const override;
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;

 private:
  void ListMlp(std::int64_t layer, std::int64_t rows, WorkList& work) const;
  LayerRow RowOf(const RankWork& work) const;
  LayerRow WithExperts(LayerRow row, const RankWork& work) const;
};

/// Returns the values of `model_type` of all families.
std::vector<std::string_view> LlamaFamilies();
/// Fills the keys of `model` from config.json of a family (llama_families.cpp).
void ReadForeignLlama(const ForeignConfig& config, const ForeignConfig* whole, ModelConfig& model);
/// Returns the values of config.json of the family that `model` is of.
ForeignValues WriteForeignLlama(const ModelConfig& model, const ModelConfig* source);
/// Returns the family's name of a tensor.
std::string SpellForeignLlama(const ModelConfig& model, const std::string& name);

}  // namespace troupe
