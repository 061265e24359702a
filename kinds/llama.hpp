// Llama-style language model: RMSNorm, rotary positions, grouped key and value heads, a gated MLP.
// It reads text. Rows of encoders replace their placeholders.
#pragma once

#include "kinds/kind.hpp"

namespace troupe {

extern const ModuleKind kLlama;

struct LlamaConfig : ModelOf<LlamaConfig, kLlama> {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides heads
  std::int64_t mlp_hidden = 0;
  std::int64_t context = 0;  ///< tokens per sample, image tokens included
  double rope_base = 10'000.0;
  bool tied_head = false;
  double norm_epsilon = 1e-5;

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
  ExtraCosts extra_costs() const override;
  bool AllowsTp(int tp) const override {
    return heads % tp == 0 && mlp_hidden % tp == 0 && kv_heads > 0 &&
           (kv_heads % tp == 0 || tp % kv_heads == 0);
  }
  std::int64_t shared_kv_heads() const override { return kv_heads; }
  bool ties_embedding() const override { return tied_head; }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  void CountFlops(const StagePlace& stage, const StepShape& shape, const std::string& name,
                  FlopCounter& count) const override;
  std::int64_t KeptElements(const StagePlace& stage, const RankWork& work) const override;
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

}  // namespace troupe
