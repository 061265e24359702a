#include "kinds/llama.hpp"

namespace troupe {
namespace {

/// The tokens of the byte tokenizer: 256 bytes, begin, end, padding.
constexpr std::int64_t kByteTokens = 259;

std::vector<ModelKey> LlamaKeys() {
  return {
      {"vocab", &LlamaConfig::vocab, kRequired, kCount, Unit{"tokens"},
       "Tokens it knows; with the bytes tokenizer at least 259 and one for each encoder."},
      {"hidden", &LlamaConfig::hidden, kRequired, kCount,
       "Width of a row; an even multiple of heads."},
      {"layers", &LlamaConfig::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
      {"heads", &LlamaConfig::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
      {"kv_heads", &LlamaConfig::kv_heads, kCount, Otherwise{"heads"},
       "Key and value heads; divides heads, and divides tp or is a multiple of it."},
      {"mlp_hidden", &LlamaConfig::mlp_hidden, kCount,
       Otherwise{"8/3 * hidden, rounded up to a multiple of 256"},
       "Width inside the MLP; a multiple of tp."},
      {"context", &LlamaConfig::context, kRequired, kCount, Unit{"tokens"},
       "Most tokens of a sample, image tokens included."},
      {"rope_base", &LlamaConfig::rope_base, kPositive, "Base of the rotary position embedding."},
      {"tied_head", &LlamaConfig::tied_head, "Whether the output head shares the token embedding."},
      {"norm_epsilon", &LlamaConfig::norm_epsilon, kPositive,
       "Added to the mean square in RMSNorm."},
  };
}

/// Returns the MLP width of Llama's models: 4096 and 11008, 5120 and 13824.
std::int64_t UsualMlp(std::int64_t hidden) {
  constexpr std::int64_t kMultiple = 256;
  return (8 * hidden / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

void CheckHeads(const LlamaConfig& llama, ModuleCheck& check) {
  const Named heads = check.Own("heads", llama.heads);
  const Named kv_heads = check.Own("kv_heads", llama.kv_heads);
  const Named hidden = check.Own("hidden", llama.hidden);
  const Named tp = check.tp();
  check.ExpectMultiple(hidden, heads);
  check.ExpectMultiple(heads, tp);
  check.ExpectMultiple(heads, kv_heads);
  if (!check.Good({heads.key, kv_heads.key, hidden.key, tp.key})) return;
  if (llama.hidden / llama.heads % 2 != 0) {
    check.Add(hidden.key, "expected an even number for each of the " + std::to_string(heads.value) +
                              " heads, which rotary positions turn in pairs, got " +
                              std::to_string(llama.hidden / llama.heads));
  }
  if (kv_heads.value % tp.value != 0 && tp.value % kv_heads.value != 0) {
    check.Add(kv_heads.key, "expected a multiple or a divisor of " + tp.key + " = " +
                                std::to_string(tp.value) + ", got " +
                                std::to_string(kv_heads.value));
  }
}

void CheckVocab(const LlamaConfig& llama, ModuleCheck& check) {
  const Named vocab = check.Own("vocab", llama.vocab);
  const Named tp = check.tp();
  if (!check.Good({vocab.key, tp.key})) return;
  const auto placeholders = check.num_placeholders();
  if (vocab.value < tp.value) {
    check.Add(vocab.key, "expected at least " + tp.key + " = " + std::to_string(tp.value) +
                             ", got " + std::to_string(vocab.value));
  } else if (check.reads_bytes() && placeholders && vocab.value < kByteTokens + *placeholders) {
    check.Add(vocab.key, "expected at least " + std::to_string(kByteTokens + *placeholders) +
                             " (259 of the bytes tokenizer, then a placeholder per encoder), got " +
                             std::to_string(vocab.value));
  }
}

/// Checks that an image fits. If it does not, every sample with an image would be cut.
void CheckContext(const LlamaConfig& llama, ModuleCheck& check) {
  const std::string key = check.KeyOf("context");
  for (const ModuleCheck::Source& source : check.sources()) {
    const auto field = source.model->field();
    if (field == nullptr || !source.good || !check.Good({key})) continue;
    const std::int64_t rows = source.model->rows_per_item();
    if (llama.context > rows) continue;
    check.Add(key, "expected more tokens than the " + std::to_string(rows) + " rows of one " +
                       std::string(field->word()) + " of \"" + source.name + "\", got " +
                       std::to_string(llama.context));
  }
}

void AddLayer(const LlamaConfig& llama, const std::string& layer, ParameterList& list) {
  const std::int64_t hidden = llama.hidden;
  const std::int64_t kv_hidden = hidden / llama.heads * llama.kv_heads;
  const double residual = InverseRoot(2 * llama.layers);
  const std::string attention = layer + ".self_attn.";
  list.AddNormWeight(layer + ".input_layernorm", hidden);
  list.AddWeight(attention + "q_proj", hidden, hidden, Cut::kRows);
  for (const char* name : {"k_proj", "v_proj"}) {
    list.AddWeight(attention + name, kv_hidden, hidden, Cut::kKeyValueRows).kv_heads =
        llama.kv_heads;
  }
  list.AddWeight(attention + "o_proj", hidden, hidden, Cut::kColumns, residual);
  list.AddNormWeight(layer + ".post_attention_layernorm", hidden);
  list.AddWeight(layer + ".mlp.gate_proj", llama.mlp_hidden, hidden, Cut::kRows);
  list.AddWeight(layer + ".mlp.up_proj", llama.mlp_hidden, hidden, Cut::kRows);
  list.AddWeight(layer + ".mlp.down_proj", hidden, llama.mlp_hidden, Cut::kColumns, residual);
}

/// If a tied head and the embedding are on different stages, each has a copy.
void AddEmbedding(const LlamaConfig& llama, const StagePlace& stage, ParameterList& list) {
  ParameterSpec& spec = list.AddNormal("embed_tokens.weight", {llama.vocab, llama.hidden},
                                       InverseRoot(llama.hidden), Cut::kRows);
  spec.tied = llama.tied_head && !(stage.first && stage.last);
  spec.tied_copy = spec.tied && !stage.first;
}

}  // namespace

const ModuleKind kLlama = {.word = "llama",
                           .meaning = "Llama-style language model",
                           .other_words = {"llm", "llama2", "llama3", "vicuna", "decoder"},
                           .similar_words = {"mistral", "qwen2", "gpt", "gpt2"},
                           .make = [] { return Model(LlamaConfig()); },
                           .keys = LlamaKeys};

void LlamaConfig::FillDefaults(const std::function<bool(const char* key)>& stated) {
  if (!stated("kv_heads")) kv_heads = heads;
  if (!stated("mlp_hidden")) mlp_hidden = UsualMlp(hidden);
}

void LlamaConfig::Check(ModuleCheck& check) const {
  CheckHeads(*this, check);
  check.ExpectMultiple(check.Own("mlp_hidden", mlp_hidden), check.tp());
  CheckVocab(*this, check);
  CheckContext(*this, check);
}

std::string LlamaConfig::WhyNotFrom(const ModelConfig& source) const {
  if (source.emits_rows()) return {};
  return "takes rows of encoders; rows of a \"" + std::string(source.kind().word) +
         "\" module are " + kNotSupportedYet;
}

ExtraCosts LlamaConfig::extra_costs() const {
  const auto h = static_cast<double>(hidden);
  const double kv_share = static_cast<double>(kv_heads) / static_cast<double>(heads);
  const double layer = h * h * (2.0 + 2.0 * kv_share) + 3.0 * h * static_cast<double>(mlp_hidden);
  return {.first = 0.0, .last = static_cast<double>(vocab) * h / layer};
}

void LlamaConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) AddEmbedding(*this, stage, list);
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    AddLayer(*this, "layers." + std::to_string(layer), list);
  }
  if (!stage.last) return;
  list.AddNormWeight("norm", hidden);
  if (!tied_head) {
    list.AddWeight("lm_head", vocab, hidden, Cut::kRows);
  } else if (!stage.first) {
    AddEmbedding(*this, stage, list);
  }
}

void LlamaConfig::CountFlops(const StagePlace& stage, const StepShape& shape, const std::string&,
                             FlopCounter& count) const {
  const std::int64_t rows = shape.samples * shape.tokens;
  const std::int64_t kv_hidden = hidden / heads * kv_heads;
  // Every position sees itself and the positions before it.
  const double pairs =
      static_cast<double>(shape.samples) * Product(shape.tokens, shape.tokens + 1) / 2.0;
  for (std::int64_t layer = 0; layer < stage.layers.size(); ++layer) {
    count.AddLinear(rows, 2 * hidden + 2 * kv_hidden, hidden);
    count.AddLinear(rows, 3 * mlp_hidden, hidden);
    count.AddAttention(pairs, hidden);
  }
  if (stage.last) count.AddLinear(shape.labels, vocab, hidden);
}

/// Assumes full samples. Counts like an encoder's layers, with an MLP of three wide rows because of
/// its gate. The last stage also keeps the probabilities over its part of the vocabulary.
std::int64_t LlamaConfig::KeptElements(const StagePlace& stage, const RankWork& work) const {
  const std::int64_t kv_width = 2 * hidden / heads * kv_heads;
  const std::int64_t wide = CeilDivide(2 * hidden + kv_width + 3 * mlp_hidden, work.tp);
  const std::int64_t weights = work.keeps.weight * CeilDivide(heads, work.tp) * context;
  const std::int64_t head =
      stage.last ? 2 * hidden + work.keeps.probability * CeilDivide(vocab, work.tp) : 0;
  const std::int64_t row =
      stage.layers.size() * work.KeptOfRow(hidden, 4 * hidden + wide, weights) + head;
  return work.samples * context * row;
}

}  // namespace troupe
