#include "configs/schema_keys.hpp"

namespace troupe {

static constexpr Range kLayers{1, kMaxLayers};

std::vector<KeySpec> KindKeys() {
  using enum ValueType;
  using enum KeyRole;
  std::vector<KeySpec> keys;
  Add(keys, {.table = "modules.*", .kinds = kVitOnly},
      {
          {"image_size", &VitConfig::image_size, kRequired, kCount, Unit{"pixels"},
           "Width and height of its images."},
          {"patch_size", &VitConfig::patch_size, kRequired, kCount, Unit{"pixels"},
           "Width and height of a patch; divides image_size."},
          {"hidden", &VitConfig::hidden, kRequired, kCount, "Width of a row; a multiple of heads."},
          {"layers", &VitConfig::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
          {"heads", &VitConfig::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
          {"mlp_hidden", &VitConfig::mlp_hidden, kCount, Otherwise{"4 * hidden"},
           "Width inside the MLP; a multiple of tp."},
          {"feature_layer", &VitConfig::feature_layer, Range{-kMaxCount, kMaxCount},
           "Whose output is the feature: 0 = the embedding, n = layer n, -1 = the last layer, -2 = "
           "the last but one. Later layers are not built."},
          {"class_token", &VitConfig::class_token,
           "Whether the feature keeps the row of the class token."},
          {"norm_epsilon", &VitConfig::norm_epsilon, kPositive,
           "Added to the variance in LayerNorm."},
      });
  Add(keys, {.table = "modules.*", .kinds = kLlamaOnly},
      {
          {"vocab", &LlamaConfig::vocab, kRequired, kCount, Unit{"tokens"},
           "Tokens it knows; with the bytes tokenizer at least 259 and one for each encoder."},
          {"hidden", &LlamaConfig::hidden, kRequired, kCount,
           "Width of a row; an even multiple of heads."},
          {"layers", &LlamaConfig::layers, kRequired, kLayers, Unit{"layers"},
           "Transformer layers."},
          {"heads", &LlamaConfig::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
          {"kv_heads", &LlamaConfig::kv_heads, kCount, Otherwise{"heads"},
           "Key and value heads; divides heads, and divides tp or is a multiple of it."},
          {"mlp_hidden", &LlamaConfig::mlp_hidden, kCount,
           Otherwise{"8/3 * hidden, rounded up to a multiple of 256"},
           "Width inside the MLP; a multiple of tp."},
          {"context", &LlamaConfig::context, kRequired, kCount, Unit{"tokens"},
           "Most tokens of a sample, image tokens included."},
          {"rope_base", &LlamaConfig::rope_base, kPositive,
           "Base of the rotary position embedding."},
          {"tied_head", &LlamaConfig::tied_head,
           "Whether the output head shares the token embedding."},
          {"norm_epsilon", &LlamaConfig::norm_epsilon, kPositive,
           "Added to the mean square in RMSNorm."},
      });
  Add(keys, {.table = "modules.*", .kinds = kSyntheticOnly},
      {
          {"forward_ms", &SyntheticConfig::forward_ms, kNotNegative, Unit{"ms"},
           "Time of a forward pass of one stage and microbatch; virtual stages share it."},
          {"backward_ms", &SyntheticConfig::backward_ms, kNotNegative, Unit{"ms"},
           "Time of a backward pass of one stage and microbatch; virtual stages share it."},
          {"weight_share", &SyntheticConfig::weight_share, Range{.low = 0, .high = 1},
           "Share of `backward_ms` that the gradients of the weights take, where a schedule runs "
           "them as passes of their own."},
          {"hidden", &SyntheticConfig::hidden, kCount, "Width of a boundary row."},
          {"rows_per_sample", &SyntheticConfig::rows_per_sample, kCountOrNone,
           "Boundary rows of each sample."},
      });
  return keys;
}

}  // namespace troupe
