#include "modules/torch/llama.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "kinds/work.hpp"
#include "layout/row_table.hpp"
#include "layout/text.hpp"
#include "modules/torch/activation_offload.hpp"
#include "modules/torch/activations.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/context_attention.hpp"
#include "modules/torch/fused_attention.hpp"
#include "modules/torch/key_value_cache.hpp"
#include "modules/torch/planted.hpp"
#include "modules/torch/products.hpp"
#include "modules/torch/recompute.hpp"
#include "modules/torch/rms_norm.hpp"
#include "modules/torch/routed_rows.hpp"
#include "modules/torch/sequence_rows.hpp"
#include "plan/layer_split.hpp"

namespace troupe {

Llama::Llama(const ModuleConfig& module, int pp, const ParameterStore& store,
             const BodyGroups& groups)
    : name_(module.name),
      config_(module.As<LlamaConfig>()),
      recompute_(module.recompute),
      numerics_(store.numerics()),
      group_(groups.tensor),
      context_(groups.context),
      expert_(groups.expert) {
  const std::int64_t head_dim = config_.head_size();
  if (config_.heads % group_->size() != 0) {
    throw std::invalid_argument(name_ + ": expected tp to divide " + std::to_string(config_.heads) +
                                " heads, got " + std::to_string(group_->size()));
  }
  if (head_dim % 2 != 0) {
    throw std::invalid_argument(name_ + ": expected an even head size for the rotary embedding, " +
                                "got " + std::to_string(head_dim));
  }
  const std::string embedding = name_ + ".embed_tokens.weight";
  if (pp == 0) embedding_ = LoadVocabulary(embedding, store);
  const Interval layers = SplitLayers(module).at(static_cast<std::size_t>(pp));
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    layers_.push_back(LoadLayer(layer, module, store));
    layers_.back().gate = store.exchange().MakeGate(name_, BucketPlace::kInLayer, layer);
    layers_.back().leaves = ActivationsLeave(module, pp, layer);
  }
  if (pp + 1 == module.num_stages()) {
    norm_ = store.Leaf(name_ + ".norm.weight");
    head_gate_ = store.exchange().MakeGate(name_, BucketPlace::kAfterLayers);
    head_ = LoadVocabulary(config_.tied_head ? embedding : name_ + ".lm_head.weight", store);
  }
  std::tie(cosine_, sine_) =
      RotaryTables(config_.context, head_dim, config_.rope, numerics_.state_options());
}

Llama::Layer Llama::LoadLayer(std::int64_t number, const ModuleConfig& module,
                              const ParameterStore& store) const {
  const std::string name = name_ + ".layers." + std::to_string(number);
  const std::string attention = name + ".self_attn.";
  const auto linears = [&](const std::vector<std::string>& names) {
    return LoadLinears(names, module, store);
  };
  const auto head_norm = [&](const char* part) {
    return config_.head_norms ? store.Leaf(attention + part) : at::Tensor();
  };
  Layer layer{.norm1 = store.Leaf(name + ".input_layernorm.weight"),
              .qkv = linears({attention + "q_proj", attention + "k_proj", attention + "v_proj"}),
              .query_norm = head_norm("q_norm.weight"),
              .key_norm = head_norm("k_norm.weight"),
              .out = linears({attention + "o_proj"}),
              .norm2 = store.Leaf(name + ".post_attention_layernorm.weight")};
  LoadMlp(name + ".mlp", number, module, store, layer);
  return layer;
}

void Llama::LoadMlp(const std::string& name, std::int64_t number, const ModuleConfig& module,
                    const ParameterStore& store, Layer& layer) const {
  const ExpertsConfig& experts = config_.experts;
  const bool routed = experts.InLayer(number);
  if (!routed || experts.shared_hidden > 0) {
    const std::string mlp = routed ? name + ".shared_expert" : name;
    layer.gate_up = LoadLinears({mlp + ".gate_proj", mlp + ".up_proj"}, module, store);
    layer.down = LoadLinears({mlp + ".down_proj"}, module, store);
  }
  if (!routed) return;
  if (experts.shared_hidden > 0) {
    layer.shared_gate = LoadLinears({name + ".shared_expert_gate"}, module, store);
  }
  const auto with_experts = [](const Layer& each) { return each.experts.has_value(); };
  layer.experts = LoadExperts(name, experts, {number, std::ranges::count_if(layers_, with_experts)},
                              *expert_, store);
}

VocabularyPart Llama::LoadVocabulary(const std::string& name, const ParameterStore& store) const {
  return {store.Leaf(name), store.FirstRow(name)};
}

void Llama::CheckVocabulary(const at::Tensor& ids, const std::string& what) const {
  const auto* const begin = ids.data_ptr<std::int64_t>();
  const auto* const end = begin + ids.numel();
  const auto* const wrong =
      std::find_if(begin, end, [&](std::int64_t id) { return id < 0 || id >= config_.vocab; });
  if (wrong == end) return;
  throw std::invalid_argument(name_ + ": expected " + what + " in [0, " +
                              std::to_string(config_.vocab) + "), got " + std::to_string(*wrong));
}

at::Tensor Llama::EmbedTokens(const at::Tensor& tokens) const {
  CheckVocabulary(tokens, "tokens");
  return Embed(Upload(tokens.reshape({-1}), numerics_.device), *embedding_, group_);
}

AttendFunction Llama::AttendOver(const std::vector<std::int64_t>& lengths) const {
  auto plan = c10::make_intrusive<AttentionPlan>();
  plan->heads = num_heads();
  plan->kv_heads = num_kv_heads();
  plan->head_dim = config_.head_size();
  plan->cosine = cosine_;
  plan->sine = sine_;
  plan->portable = numerics_.portable;
  plan->causal = true;
  const bool same = std::ranges::adjacent_find(lengths, std::not_equal_to()) == lengths.end();
  if (context_->size() == 1 && same) {
    plan->sequences = std::ssize(lengths);
    plan->length = lengths.empty() ? 0 : lengths.front();
    return [plan](const at::Tensor& qkv) { return Attention(qkv, plan); };
  }
  if (context_->size() == 1 && HasFlashAttention(numerics_.options(), plan->head_dim)) {
    return
        [packs = PackPlan(lengths, *plan)](const at::Tensor& qkv) { return Attention(qkv, packs); };
  }
  auto context = c10::make_intrusive<ContextPlan>();
  context->group = context_;
  for (auto begin = lengths.begin(); begin != lengths.end();) {
    const auto end =
        std::find_if(begin, lengths.end(), [=](auto other) { return other != *begin; });
    AddCausalGroup(end - begin, *begin, *plan, *context);
    begin = end;
  }
  return [context](const at::Tensor& qkv) { return AttentionOverContext(qkv, context); };
}

at::Tensor Llama::RunLayers(at::Tensor rows, const std::vector<std::int64_t>& lengths,
                            const RoutedRowsPtr& routed) const {
  std::int64_t num_rows = 0;
  std::int64_t longest = 0;
  for (const std::int64_t length : lengths) {
    num_rows += ChunksOf(length, context_->size(), context_->rank()).size();
    longest = std::max(longest, length);
  }
  if (longest > config_.context || rows.size(1) != config_.hidden) {
    throw std::invalid_argument(name_ + ": expected at most " + std::to_string(config_.context) +
                                " tokens of " + std::to_string(config_.hidden) +
                                " values per sample, got " + std::to_string(longest) + " of " +
                                std::to_string(rows.size(1)));
  }
  const std::int64_t cut_rows = group_->cuts_rows() ? num_rows : 0;
  const std::int64_t own_rows = cut_rows > 0 ? CeilDivide(num_rows, group_->size()) : num_rows;
  if (rows.size(0) != own_rows) {
    throw std::invalid_argument(name_ + ": expected " + std::to_string(own_rows) + " rows of " +
                                Counted(std::ssize(lengths), "sample") + ", got " +
                                std::to_string(rows.size(0)));
  }
  const PassRows pass{
      AttendOver(HasLibraryFault(LibraryFault::kJoinedSamples) ? std::vector<std::int64_t>{num_rows}
                                                               : lengths),
      routed, cut_rows};
  for (const Layer& layer : layers_) {
    const auto run = [this, &layer, pass](const at::Tensor& x) { return RunLayer(x, layer, pass); };
    const auto part = [&](const at::Tensor& x) {
      return RunPart(recompute_.Has(LayerPart::kLayer), x,
                     AnyTrained({&layer.qkv, &layer.out, &layer.gate_up, &layer.down}), run);
    };
    rows = RunLayerAway(layer.leaves, layer.gate->Enter(rows), part);
  }
  if (routed->losses) routed->losses->Finish(*expert_);
  return rows;
}

CacheSizes Llama::cache_sizes() const {
  return {.layers = std::ssize(layers_),
          .heads = num_heads(),
          .kv_heads = num_kv_heads(),
          .head_dim = config_.head_size()};
}

at::Tensor Llama::RunLayers(at::Tensor rows, const CachedTokens& tokens,
                            KeyValueCache& cache) const {
  const Turning turning = TurningOf(tokens, cosine_, sine_);
  const auto routed = c10::make_intrusive<RoutedRows>();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto attend = [&](const at::Tensor& qkv) {
      return cache.Attend(i, qkv, tokens, turning);
    };
    rows = RunLayer(rows, layers_[i], {attend, routed});
  }
  return rows;
}

at::Tensor Llama::Logits(const at::Tensor& rows) const {
  return WideProduct(RmsNorm(rows, norm_, config_.norm_epsilon, numerics_), head_->weight.t());
}

at::Tensor Llama::NormHeads(const at::Tensor& qkv, const Layer& layer) const {
  if (!config_.head_norms) return qkv;
  const std::int64_t head_dim = config_.head_size();
  const std::int64_t queries = num_heads() * head_dim;
  const std::int64_t keys = num_kv_heads() * head_dim;
  const auto normed = [&](std::int64_t begin, std::int64_t width, const at::Tensor& weight) {
    const at::Tensor heads = qkv.narrow(1, begin, width).reshape({-1, head_dim});
    return RmsNorm(heads, weight, config_.norm_epsilon, numerics_).view({-1, width});
  };
  return at::cat({normed(0, queries, layer.query_norm), normed(queries, keys, layer.key_norm),
                  qkv.narrow(1, queries + keys, keys)},
                 1);
}

at::Tensor Llama::RunAttention(const at::Tensor& rows, const Layer& layer,
                               const PassRows& pass) const {
  const at::Tensor qkv = Linear(RmsNorm(rows, layer.norm1, config_.norm_epsilon, numerics_),
                                layer.qkv, LinearCut::kOutputs, group_, pass.cut_rows);
  return pass.attend(NormHeads(qkv, layer));
}

at::Tensor Llama::RunMlp(const at::Tensor& rows, const Layer& layer, const PassRows& pass) const {
  const auto linear = [&](const at::Tensor& x, const LinearWeights& weights, LinearCut cut) {
    return Linear(x, weights, cut, group_, pass.cut_rows);
  };
  const auto norm = [this, &layer](const at::Tensor& in) {
    return RmsNorm(in, layer.norm2, config_.norm_epsilon, numerics_);
  };
  const auto up = [this, &layer, pass](const at::Tensor& in) {
    return SwiGlu(Linear(in, layer.gate_up, LinearCut::kOutputs, group_, pass.cut_rows));
  };
  const bool again = recompute_.Has(LayerPart::kMlpUp);
  if (!layer.experts) {
    const at::Tensor wide = RunPart(again, rows, layer.gate_up.trained(),
                                    [norm, up](const at::Tensor& in) { return up(norm(in)); });
    return linear(wide, layer.down, LinearCut::kInputs);
  }
  const at::Tensor x = norm(rows);
  at::Tensor sum;
  if (layer.gate_up.weight.defined()) {
    sum = linear(RunPart(again, x, layer.gate_up.trained(), up), layer.down, LinearCut::kInputs);
  }
  if (sum.defined()) {
    NoteKept({sum});
    sum = sum * at::sigmoid(linear(x, layer.shared_gate, LinearCut::kNone));
  }
  // Each rank routes its own rows.
  const bool cuts_here = group_->size() > 1 && pass.cut_rows == 0;
  at::Tensor given =
      RunExperts(cuts_here ? CutRows(x, group_) : x, *layer.experts, pass.routed, expert_, again);
  if (cuts_here) given = JoinRows(given, x.size(0), group_);
  return sum.defined() ? sum + given : given;
}

const at::Tensor& Llama::TrainedOfMlp(const Layer& layer) {
  const at::Tensor& linear = AnyTrained({&layer.gate_up, &layer.down});
  return layer.experts && !linear.requires_grad() ? layer.experts->router : linear;
}

at::Tensor Llama::RunLayer(const at::Tensor& rows, const Layer& layer, const PassRows& pass) const {
  const auto attention = [this, &layer, pass](const at::Tensor& x) {
    return RunAttention(x, layer, pass);
  };
  const at::Tensor heads =
      RunPart(recompute_.Has(LayerPart::kAttention), rows, layer.qkv.trained(), attention);
  const at::Tensor middle =
      rows + Linear(heads, layer.out, LinearCut::kInputs, group_, pass.cut_rows);
  const auto mlp = [this, &layer, pass](const at::Tensor& x) { return RunMlp(x, layer, pass); };
  return middle + RunPart(recompute_.Has(LayerPart::kMlp), middle, TrainedOfMlp(layer), mlp);
}

at::Tensor Llama::Loss(const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                       const at::Tensor& labels, Predictions& predictions) const {
  CheckVocabulary(labels, "labels");
  const at::Tensor own = RmsNorm(head_gate_->Enter(rows), norm_, config_.norm_epsilon, numerics_);
  return VocabularyLoss(group_->cuts_rows() ? GatherParts(own, counts, group_) : own, *head_,
                        Upload(labels, numerics_.device), group_, predictions);
}

}  // namespace troupe
