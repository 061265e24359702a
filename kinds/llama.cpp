#include "kinds/llama.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// The tokens of the byte tokenizer: 256 bytes, begin, end, padding.
constexpr std::int64_t kByteTokens = 259;

/// Far above any model. Checks and estimates go through the parameters of every expert.
constexpr double kMaxExperts = 4'096;

/// A key in a part of the configuration.
template <typename Part, typename Field, typename... Parts>
ModelKey Inside(Part LlamaConfig::*part, std::string_view name, Field Part::*field,
                Parts... parts) {
  ModelKey key(name, std::move(parts)...);
  if (key.words.empty()) key.type = TypeOf<Field>();
  key.slot = [part, field](ModelConfig& model) -> ModelSlot {
    return SlotOf(static_cast<LlamaConfig&>(model).*part.*field);
  };
  return key;
}

/// A key of the rotary positions.
template <typename Field, typename... Parts>
ModelKey Rope(std::string_view name, Field RotaryConfig::*field, Parts... parts) {
  return Inside(&LlamaConfig::rope, name, field, std::move(parts)...);
}

/// A key of the experts.
template <typename Field, typename... Parts>
ModelKey Experts(std::string_view name, Field ExpertsConfig::*field, Parts... parts) {
  return Inside(&LlamaConfig::experts, name, field, kAddedLater, std::move(parts)...);
}

std::vector<ModelKey> LlamaKeys() {
  return {
      {"vocab", &LlamaConfig::vocab, kRequired, kCount, Unit{"tokens"},
       "Tokens it knows; with the bytes tokenizer at least 259 and one for each encoder."},
      {"hidden", &LlamaConfig::hidden, kRequired, kCount,
       "Width of a row; without `head_dim` an even multiple of heads."},
      {"layers", &LlamaConfig::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
      {"heads", &LlamaConfig::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
      {"kv_heads", &LlamaConfig::kv_heads, kCount, Otherwise{"heads"},
       "Key and value heads; divides heads, and divides tp or is a multiple of it."},
      {"head_dim", &LlamaConfig::head_dim, kCount,
       "Width of a head, even. Unless given, hidden / heads."},
      {"attention_bias", &LlamaConfig::attention_bias, Words{"none", "qkv", "all"},
       "The linears of attention that have a bias: \"qkv\" those into it (Qwen2), \"all\" also the "
       "one out of it."},
      {"head_norms", &LlamaConfig::head_norms,
       "Whether an RMSNorm precedes the rotation of each head of queries and keys (Qwen3)."},
      {"mlp_hidden", &LlamaConfig::mlp_hidden, kCount,
       Otherwise{"8/3 * hidden, rounded up to a multiple of 256"},
       "Width inside the MLP; a multiple of tp."},
      {"context", &LlamaConfig::context, kRequired, kCount, Unit{"tokens"},
       "Most tokens of a sample, image tokens included."},
      Rope("rope_base", &RotaryConfig::base, kPositive, "Base of the rotary position embedding."),
      Rope("rope_scaling", &RotaryConfig::scaling, Words{"none", "linear", "llama3"},
           Others{"none", {"default"}}, Others{"linear", {"dynamic", "yarn", "longrope"}, false},
           "How rotary frequencies are changed for a longer context: \"linear\" divides all by "
           "`rope_factor`, \"llama3\" the low ones."),
      Rope("rope_factor", &RotaryConfig::factor, kPositive, "By what they are divided."),
      Rope("rope_low_frequency", &RotaryConfig::low_frequency, kPositive,
           "llama3: waves longer than rope_original_context / this are divided."),
      Rope("rope_high_frequency", &RotaryConfig::high_frequency, kPositive,
           "llama3: waves shorter than rope_original_context / this stay. Above "
           "rope_low_frequency."),
      Rope("rope_original_context", &RotaryConfig::original_context, kCount, Unit{"tokens"},
           "llama3: the context before it was lengthened."),
      Experts("experts", &ExpertsConfig::count, Range{0, kMaxExperts},
              "Experts in place of a layer's MLP, a multiple of ep; 0 for none."),
      Experts("experts_per_token", &ExpertsConfig::per_token, kCount,
              "How many of them the router chooses for a token."),
      Experts("expert_hidden", &ExpertsConfig::hidden, Range{0, kMaxCount},
              "Width inside an expert; a multiple of etp. Required with experts."),
      Experts(
          "shared_expert_hidden", &ExpertsConfig::shared_hidden, Range{0, kMaxCount},
          "Width of one more expert for all tokens, times a gate (Qwen2-MoE), a multiple of tp; "
          "0 for none."),
      Experts("expert_every", &ExpertsConfig::every, kCount, Unit{"layers"},
              "One layer of this many, the last of them, has experts; the others have an MLP."),
      Experts(
          "router_softmax", &ExpertsConfig::softmax, Words{"before", "after"},
          "Whether the router's softmax comes before its choice, over all experts, or after it, "
          "over those that are chosen (Mixtral; norm_topk_prob of Qwen)."),
      {"tied_head", &LlamaConfig::tied_head, "Whether the output head shares the token embedding."},
      {"norm_epsilon", &LlamaConfig::norm_epsilon, kPositive,
       "Added to the mean square in RMSNorm."},
      {"sliding_window", &LlamaConfig::sliding_window, kCount, Unit{"tokens"},
       "Tokens that a token sees, itself included. Fewer than `context` are not supported yet."},
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
  if (!llama.head_dim) check.ExpectMultiple(hidden, heads);
  check.ExpectMultiple(heads, tp);
  check.ExpectMultiple(heads, kv_heads);
  if (!check.Good({heads.key, kv_heads.key, hidden.key, tp.key})) return;
  if (llama.head_size() % 2 != 0) {
    check.Add(llama.head_dim ? check.KeyOf("head_dim") : hidden.key,
              "expected an even number for each of the " + std::to_string(heads.value) +
                  " heads, which rotary positions turn in pairs, got " +
                  std::to_string(llama.head_size()));
  }
  if (kv_heads.value % tp.value != 0 && tp.value % kv_heads.value != 0) {
    check.Add(kv_heads.key, "expected a multiple or a divisor of " + tp.key + " = " +
                                std::to_string(tp.value) + ", got " +
                                std::to_string(kv_heads.value));
  }
}

void CheckRope(const LlamaConfig& llama, ModuleCheck& check) {
  if (llama.rope.scaling != RopeScaling::kNone && llama.rope.factor == 1.0) {
    check.Add(check.KeyOf("rope_factor"), "expected other than 1 with rope_scaling, got 1");
  }
  const std::string key = check.KeyOf("rope_high_frequency");
  if (llama.rope.scaling != RopeScaling::kLlama3 ||
      !check.Good({key, check.KeyOf("rope_low_frequency")}))
    return;
  if (llama.rope.high_frequency > llama.rope.low_frequency) return;
  check.Add(key,
            "expected more than rope_low_frequency = " + std::to_string(llama.rope.low_frequency) +
                ", got " + std::to_string(llama.rope.high_frequency));
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

/// Checks that one image fits; of an image in tiles, its first square. If it does not, every sample
/// with an image would be cut.
void CheckContext(const LlamaConfig& llama, ModuleCheck& check) {
  const std::string key = check.KeyOf("context");
  for (const ModuleCheck::Source& source : check.sources()) {
    const auto field = source.model->field();
    if (field == nullptr || !source.good || !check.Good({key})) continue;
    const std::int64_t side = source.model->tile_side();
    const std::int64_t rows = side > 0 ? side * side : source.model->rows_per_item();
    if (llama.context > rows) continue;
    check.Add(key, "expected more tokens than the " + std::to_string(rows) + " rows of " +
                       (side > 0 ? "the first square of one " : "one ") +
                       std::string(field->word()) + " of \"" + source.name + "\", got " +
                       std::to_string(llama.context));
  }
}

void CheckWindow(const LlamaConfig& llama, ModuleCheck& check) {
  const std::string key = check.KeyOf("sliding_window");
  if (!llama.sliding_window || !check.Good({key, check.KeyOf("context")})) return;
  if (*llama.sliding_window >= llama.context) return;
  check.Add(key, "a window shorter than " + check.KeyOf("context") + " = " +
                     std::to_string(llama.context) + " is " + kNotSupportedYet + ", got " +
                     std::to_string(*llama.sliding_window) + "; lower `context` to that");
}

void AddLayer(const LlamaConfig& llama, const std::string& layer, ParameterList& list) {
  const std::int64_t hidden = llama.hidden;
  const double residual = InverseRoot(2 * llama.layers);
  const std::string attention = layer + ".self_attn.";
  list.AddNormWeight(layer + ".input_layernorm", hidden);
  using enum LinearRole;
  list.AddWeight(attention + "q_proj", kQuery, llama.query_width(), hidden, Cut::kRows);
  for (const auto& [name, role] : {std::pair{"k_proj", kKey}, std::pair{"v_proj", kValue}}) {
    list.AddWeight(attention + name, role, llama.key_width(), hidden, Cut::kKeyValueRows).kv_heads =
        llama.kv_heads;
  }
  if (llama.attention_bias != AttentionBias::kNone) {
    list.AddBias(attention + "q_proj", llama.query_width(), Cut::kRows);
    for (const char* name : {"k_proj", "v_proj"}) {
      list.AddBias(attention + name, llama.key_width(), Cut::kKeyValueRows).kv_heads =
          llama.kv_heads;
    }
  }
  if (llama.head_norms) {
    list.AddNormWeight(attention + "q_norm", llama.head_size(), Cut::kSummed);
    list.AddNormWeight(attention + "k_norm", llama.head_size(), Cut::kSummed);
  }
  list.AddWeight(attention + "o_proj", kOutput, hidden, llama.query_width(), Cut::kColumns,
                 residual);
  if (llama.attention_bias == AttentionBias::kAll) list.AddBias(attention + "o_proj", hidden);
  list.AddNormWeight(layer + ".post_attention_layernorm", hidden);
}

void AddMlp(const LlamaConfig& llama, std::int64_t layer, const std::string& name,
            ParameterList& list) {
  const double residual = InverseRoot(2 * llama.layers);
  if (llama.experts.InLayer(layer)) {
    AddExperts(llama.experts, name, llama.hidden, residual, list);
  } else {
    AddGatedMlp(name, llama.mlp_hidden, llama.hidden, residual, list);
  }
}

/// If a tied head and the embedding are on different stages, each has a copy.
void AddEmbedding(const LlamaConfig& llama, const StagePlace& stage, ParameterList& list) {
  ParameterSpec& spec = list.AddEmbedding("embed_tokens", llama.vocab, llama.hidden, Cut::kRows);
  spec.tied = llama.tied_head && !(stage.first && stage.last);
  spec.tied_copy = spec.tied && !stage.first;
}

}  // namespace

const ModuleKind kLlama = {
    .word = "llama",
    .meaning = "Llama-style language model",
    .other_words = {"llm", "llama2", "llama3", "vicuna", "mistral", "qwen2", "qwen3", "decoder"},
    .similar_words = {"gpt", "gpt2"},
    .make = [] { return Model(LlamaConfig()); },
    .keys = LlamaKeys,
    .foreign_types = LlamaFamilies(),
    .read_foreign = ReadForeignLlama,
    .write_foreign = WriteForeignLlama,
    .foreign_names = {{"model.language_model.", ""},
                      {"language_model.model.", "language_model."},
                      {"model.", ""},
                      {"language_model.", "language_model."},
                      {"", ""}},
    .foreign_probe = "embed_tokens.weight",
    .foreign_vocabulary = {"embed_tokens.weight", "lm_head.weight"},
    .foreign_roots = {"embed_tokens", "layers", "norm", "lm_head"},
    .foreign_alone = {"model.", ""},
    .foreign_in_whole = {"language_model.model.", "language_model."},
    .own_spelling = OwnExpertName,
    .foreign_spelling = SpellForeignLlama,
    .foreign_in_memory = {"model.language_model.", ""}};

void LlamaConfig::FillDefaults(const std::function<bool(const char* key)>& stated) {
  if (!stated("kv_heads")) kv_heads = heads;
  if (!stated("mlp_hidden")) mlp_hidden = UsualMlp(hidden);
}

void LlamaConfig::Check(ModuleCheck& check) const {
  CheckHeads(*this, check);
  if (has_mlps()) check.ExpectMultiple(check.Own("mlp_hidden", mlp_hidden), check.tp());
  CheckExperts(experts, check);
  const std::string every = check.KeyOf("expert_every");
  if (experts.count > 0 && experts.every > layers && check.Good({every, check.KeyOf("layers")})) {
    check.Add(every, "expected at most " + check.KeyOf("layers") + " = " + std::to_string(layers) +
                         ", got " + std::to_string(experts.every) + ": no layer has experts");
  }
  CheckRope(*this, check);
  CheckVocab(*this, check);
  CheckContext(*this, check);
  CheckWindow(*this, check);
}

std::string LlamaConfig::WhyNotFrom(const ModelConfig& source) const {
  if (source.emits_rows()) return {};
  return "takes rows of encoders; rows of a \"" + std::string(source.kind().word) +
         "\" module are " + kNotSupportedYet;
}

void LlamaConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) AddEmbedding(*this, stage, list);
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    list.SetLayer(layer);
    const std::string name = "layers." + std::to_string(layer);
    AddLayer(*this, name, list);
    AddMlp(*this, layer, name + ".mlp", list);
  }
  list.SetLayer(std::nullopt);
  if (!stage.last) return;
  list.AddNormWeight("norm", hidden);
  if (!tied_head) {
    list.AddWeight("lm_head", vocab, hidden, Cut::kRows);
  } else if (!stage.first) {
    AddEmbedding(*this, stage, list);
  }
}

void LlamaConfig::ListMlp(std::int64_t layer, std::int64_t rows, WorkList& work) const {
  const bool routed = experts.InLayer(layer);
  work.Enter(routed ? LayerPart::kLayer : LayerPart::kMlpUp);
  work.AddElements(NormWork(rows, hidden));
  work.Enter(LayerPart::kMlpUp);
  if (routed) {
    work.AddExperts({.rows = rows,
                     .width = hidden,
                     .hidden = experts.hidden,
                     .per_token = experts.per_token,
                     .count = experts.count});
  }
  const std::int64_t inner = routed ? experts.shared_hidden : mlp_hidden;
  if (inner == 0) return;
  work.AddLinear({.rows = rows, .out = 2 * inner, .in = hidden, .cut = Cut::kRows});
  // Gate and inputs become one row; their gradients need all three.
  work.AddElements({.rows = rows, .width = inner, .forward = 3.0, .backward = 5.0, .inside = true});
  work.Enter(LayerPart::kMlp);
  work.AddLinear({.rows = rows, .out = hidden, .in = inner, .cut = Cut::kColumns});
}

void LlamaConfig::ListWork(const StagePlace& stage, const StepShape& shape, const std::string&,
                           WorkList& work) const {
  const std::int64_t rows = shape.samples * shape.tokens;
  // Every position sees itself and the positions before it.
  const double pairs =
      static_cast<double>(shape.samples) * Product(shape.tokens, shape.tokens + 1) / 2.0;
  if (stage.first) work.AddElements({.rows = rows, .width = hidden, .forward = 2, .backward = 2});
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    work.Enter(LayerPart::kAttention);
    work.AddElements(NormWork(rows, hidden));
    work.AddLinear({.rows = rows,
                    .out = query_width() + 2 * key_width(),
                    .in = hidden,
                    .cut = Cut::kRows,
                    .kv_out = 2 * key_width(),
                    .kv_heads = kv_heads});
    const double norms = head_norms ? 1.0 : 0.0;
    work.AddElements({.rows = rows,
                      .width = query_width() + key_width(),
                      .forward = 2.0 + 2.0 * norms,
                      .backward = 2.0 + 3.0 * norms,
                      .inside = true});
    work.AddAttention({.rows = rows,
                       .pairs = pairs,
                       .heads = heads,
                       .width = query_width(),
                       .kv_width = key_width(),
                       .kv_heads = kv_heads});
    work.Enter(LayerPart::kLayer);
    work.AddLinear({.rows = rows, .out = hidden, .in = query_width(), .cut = Cut::kColumns});
    work.AddElements(ResidualWork(rows, hidden));
    ListMlp(layer, rows, work);
    work.Enter(LayerPart::kLayer);
    work.AddElements(ResidualWork(rows, hidden));
  }
  work.Enter(std::nullopt);
  if (!stage.last) return;
  work.AddElements(NormWork(rows, hidden));
  work.AddLinear({.rows = shape.labels, .out = vocab, .in = hidden, .cut = Cut::kRows});
  // The loss reads the scores for their maximum and their sum, and writes their gradients.
  work.AddElements(
      {.rows = shape.labels, .width = vocab, .forward = 2.0, .backward = 2.0, .inside = true});
}

/// Rows are cut over tp here, whatever the others are. An expert keeps a row that it gets, three wide ones
/// because of its gate, and what returns; the expert for all tokens what its gate multiplies. If the router chooses all experts equally often, a rank
/// gets as many as it sends, once for each rank along etp.
LayerRow LlamaConfig::WithExperts(LayerRow row, const RankWork& work) const {
  const std::int64_t wide = experts.per_token * experts.hidden + experts.shared_hidden;
  // Where a row goes and comes back to are whole numbers of 64 bits.
  constexpr std::int64_t kPlaces = 12;
  const std::int64_t moved = experts.per_token * (2 * hidden + kPlaces) * work.etp;
  const std::int64_t shared = experts.shared_hidden == 0 ? 0
                              : work.cuts_rows           ? CeilDivide(hidden, work.tp)
                                                         : hidden;
  row.mlp_up = CeilDivide(2 * wide, work.tp);
  row.mlp_rest = CeilDivide(wide + moved, work.tp) + shared;
  row.up_has_norm = false;
  return row;
}

/// A row of a layer without experts. Attention keeps one sum per head, which is taken for as long as
/// other elements. Norms of heads keep their inputs.
LayerRow LlamaConfig::RowOf(const RankWork& work) const {
  const std::int64_t normed = head_norms ? query_width() + key_width() : 0;
  return {.hidden = hidden,
          .attention = CeilDivide(query_width() + 2 * key_width() + normed + heads, work.tp),
          .heads = CeilDivide(query_width(), work.tp),
          .mlp_up = CeilDivide(2 * mlp_hidden, work.tp),
          .mlp_rest = CeilDivide(mlp_hidden, work.tp)};
}

/// Assumes full samples. Counts like an encoder's layers, with an MLP of three wide rows because of
/// its gate. The last stage also keeps the inputs of its norm and of its head.
std::int64_t LlamaConfig::KeptElements(const StagePlace& stage, const RankWork& work) const {
  const LayerRow layer = RowOf(work);
  const std::int64_t routed_layers = experts.LayersIn(stage.layers);
  // The norm's input is cut, the head's is whole.
  const std::int64_t normed_rows = work.cuts_rows ? CeilDivide(hidden, work.tp) : hidden;
  const std::int64_t head = stage.last ? normed_rows + hidden : 0;
  const std::int64_t row = (stage.layers.size() - routed_layers) * work.KeptOf(layer) +
                           routed_layers * work.KeptOf(WithExperts(layer, work)) + head;
  return work.samples * CeilDivide(context, work.cp) * row;
}

LayerSpace LlamaConfig::SpaceElements(const StagePlace& stage, const RankWork& work) const {
  if (stage.layers.empty()) return {};
  const LayerRow layer = RowOf(work);
  const bool routed = experts.LayersIn(stage.layers) > 0;
  return work.SpaceOf(routed ? WithExperts(layer, work) : layer) *
         (work.samples * CeilDivide(context, work.cp));
}

}  // namespace troupe
