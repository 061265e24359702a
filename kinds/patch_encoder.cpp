#include "kinds/patch_encoder.hpp"

#include <algorithm>
#include <array>

namespace troupe {

static ImageRecipe& RecipeOf(ModelConfig& model) { return *model.images(); }

/// Returns the keys of an ImageRecipe.
static std::vector<ModelKey> ImageKeys() {
  using Slot = ModelSlot (*)(ModelConfig&);
  constexpr Slot kFit = [](ModelConfig& model) { return SlotOf(RecipeOf(model).fit); };
  constexpr Slot kFilter = [](ModelConfig& model) { return SlotOf(RecipeOf(model).resampling); };
  constexpr Slot kMean = [](ModelConfig& model) { return SlotOf(RecipeOf(model).mean); };
  constexpr Slot kDeviation = [](ModelConfig& model) { return SlotOf(RecipeOf(model).deviation); };
  constexpr Slot kGrids = [](ModelConfig& model) { return SlotOf(RecipeOf(model).grids); };
  return {
      {kImageRecipeKeys[0], kFit, kImageFitWords, Otherwise{"`data.image_fit`, else \"crop\""},
       "How an image becomes a square. \"crop\": its shorter side is resized, the middle is kept. "
       "\"pad\": it is extended to a square in the mean colour, then resized. \"stretch\": both "
       "sides are resized. \"anyres\": the stretched image and the tiles of a grid over it, as in "
       "LLaVA-NeXT."},
      {kImageRecipeKeys[1], kFilter, kResamplingWords, "The filter of the resize, as in Pillow."},
      {kImageRecipeKeys[2], kMean, ValueType::kChannels, Range{0, 1},
       "Subtracted from the red, green and blue of an image, each in [0, 1]."},
      {kImageRecipeKeys[3], kDeviation, ValueType::kChannels, kPositive,
       "Deviations by which the centred channels are divided."},
      {kImageRecipeKeys[4], kGrids, ValueType::kGrids,
       Otherwise{"with \"anyres\": those of LLaVA-NeXT, `[\"1x2\", \"2x1\", \"2x2\", \"3x1\", "
                 "\"1x3\"]`"},
       "Grids of tiles, rows x columns, of which an image gets the one that shows most of its "
       "pixels. Only with \"anyres\"."},
  };
}

std::vector<ModelKey> PatchEncoderKeys(std::vector<ModelKey> own) {
  std::vector<ModelKey> keys = {
      {"image_size", &PatchEncoder::image_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of its images."},
      {"patch_size", &PatchEncoder::patch_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of a patch; divides image_size, unless drops_border."},
      {"drops_border", &PatchEncoder::drops_border,
       "Whether pixels beyond the last whole patch are dropped; else there may be none."},
      {"hidden", &PatchEncoder::hidden, kRequired, kCount, "Width of a row; a multiple of heads."},
      {"layers", &PatchEncoder::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
      {"heads", &PatchEncoder::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
      {"mlp_hidden", &PatchEncoder::mlp_hidden, kCount, Otherwise{"4 * hidden"},
       "Width inside the MLP; a multiple of tp."},
      {"feature_layer", &PatchEncoder::feature_layer, Range{-kMaxCount, kMaxCount},
       "Whose output is the feature: 0 = the embedding, n = layer n, -1 = the last layer, -2 = the "
       "last but one. Later layers are not built."},
      {"final_norm", &PatchEncoder::final_norm, "Whether a norm follows the feature layer."},
      {"activation", &PatchEncoder::activation, Words{"quick_gelu", "gelu", "gelu_tanh"},
       Others{"gelu_tanh", {"gelu_pytorch_tanh", "gelu_new"}},
       "The function inside the MLP; \"gelu_tanh\" approximates \"gelu\"."},
      {"norm_epsilon", &PatchEncoder::norm_epsilon, kPositive,
       "Added to the variance in LayerNorm."},
  };
  keys.insert(keys.end() - 1, own.begin(), own.end());
  const std::vector<ModelKey> images = ImageKeys();
  keys.insert(keys.begin() + 3, images.begin(), images.end());
  return keys;
}

namespace {

struct ActivationName {
  std::string_view word;
  MlpActivation activation;
};

/// Words of transformers; of several for one function the first is written.
constexpr auto kActivationNames = std::to_array<ActivationName>({
    {"quick_gelu", MlpActivation::kQuickGelu},
    {"gelu", MlpActivation::kGelu},
    {"gelu_pytorch_tanh", MlpActivation::kGeluTanh},
    {"gelu_new", MlpActivation::kGeluTanh},
});

std::string ForeignWord(MlpActivation activation) {
  return std::string(
      std::ranges::find(kActivationNames, activation, &ActivationName::activation)->word);
}

}  // namespace

static MlpActivation ReadForeignActivation(const ForeignConfig& config, MlpActivation otherwise) {
  const std::string word = config.Word("hidden_act", ForeignWord(otherwise));
  const auto* const found = std::ranges::find(kActivationNames, word, &ActivationName::word);
  if (found != kActivationNames.end()) return found->activation;
  config.Refuse("hidden_act",
                "expected \"quick_gelu\", \"gelu\" or \"gelu_pytorch_tanh\", got \"" + word + "\"");
}

bool ReadKeepsFirstRow(const ForeignConfig& whole) {
  const std::string strategy = whole.Word("vision_feature_select_strategy", "default");
  if (strategy == "full" || strategy == "default") return strategy == "full";
  whole.Refuse("vision_feature_select_strategy",
               "expected \"default\" or \"full\", got \"" + strategy + "\"");
}

std::vector<TileGrid> ReadForeignGrids(const ForeignConfig& config, std::int64_t size) {
  constexpr std::int64_t kUsualSize = 336;  // of the encoder whose grids transformers falls back to
  std::vector<IntegerPair> usual;
  for (const TileGrid& grid : kUsualGrids) {
    usual.push_back({grid.rows * kUsualSize, grid.columns * kUsualSize});
  }
  const std::string key = "image_grid_pinpoints";
  std::vector<TileGrid> grids;
  for (const auto& [height, width] : config.Pairs(key, usual)) {
    for (const std::int64_t side : {height, width}) {
      if (size > 0 && side > 0 && side % size == 0 && side / size <= kMaxGridSide) continue;
      config.Refuse(key, "expected multiples of the encoder's image_size, " + std::to_string(size) +
                             ", up to " + std::to_string(kMaxGridSide) + " times it, got " +
                             (config.Has(key) ? "" : "none, for which transformers takes ") +
                             std::to_string(side));
    }
    grids.push_back({height / size, width / size});
  }
  return grids;
}

void ReadForeignEncoder(const ForeignConfig& config, const ForeignConfig* whole,
                        PatchEncoder& encoder) {
  if (config.Integer("num_channels", 3) != 3) {
    config.Refuse("num_channels", "expected 3, the channels of an image");
  }
  encoder.image_size = config.Integer("image_size", encoder.image_size);
  encoder.patch_size = config.Integer("patch_size", encoder.patch_size);
  encoder.drops_border = encoder.patch_size > 0 && encoder.image_size % encoder.patch_size != 0;
  encoder.hidden = config.Integer("hidden_size", 768);
  encoder.layers = config.Integer("num_hidden_layers", 12);
  encoder.heads = config.Integer("num_attention_heads", 12);
  encoder.mlp_hidden = config.Integer("intermediate_size", 3'072);
  encoder.norm_epsilon = config.Number("layer_norm_eps", encoder.norm_epsilon);
  encoder.activation = ReadForeignActivation(config, encoder.activation);
  if (whole == nullptr) return;
  if (encoder.image_size > 0 && whole->Word("model_type", "") == "llava_next") {
    encoder.image_recipe.fit = ImageFit::kAnyres;
    encoder.image_recipe.grids = ReadForeignGrids(*whole, encoder.image_size);
  }
  encoder.feature_layer = whole->Integer("vision_feature_layer", -2);
  encoder.final_norm = false;
}

/// Those that are not built are carried along from the source.
static std::int64_t LayersInFolder(const PatchEncoder& encoder, const ModelConfig* source) {
  return source == nullptr ? encoder.built_layers()
                           : dynamic_cast<const PatchEncoder*>(source)->layers;
}

ForeignValues WriteForeignEncoder(const PatchEncoder& encoder, const ModelConfig* source) {
  return {
      {"hidden_size", encoder.hidden},
      {"intermediate_size", encoder.mlp_hidden},
      {"num_hidden_layers", LayersInFolder(encoder, source)},
      {"num_attention_heads", encoder.heads},
      {"num_channels", std::int64_t{3}},
      {"image_size", encoder.image_size},
      {"patch_size", encoder.patch_size},
      {"hidden_act", ForeignWord(encoder.activation)},
      {"layer_norm_eps", encoder.norm_epsilon},
  };
}

std::vector<ForeignConstant> EncoderConstants(const ModelConfig& model) {
  const auto& encoder = dynamic_cast<const PatchEncoder&>(model);
  if (encoder.final_norm) return {};
  return {{"post_layernorm.weight", {encoder.hidden}, 1.0},
          {"post_layernorm.bias", {encoder.hidden}, 0.0}};
}

std::vector<ForeignNames> VisionNames() {
  std::vector<ForeignNames> names;
  for (const std::string_view tower :
       {"model.vision_tower.vision_model.", "vision_tower.vision_model.",
        "model.vision_tower.vision_tower.vision_model.", "model.vision_tower.", "vision_tower.",
        "vision_model.", ""}) {
    names.push_back({tower});
  }
  return names;
}

void PatchEncoder::FillDefaults(const std::function<bool(const char* key)>& stated) {
  if (!stated("mlp_hidden")) mlp_hidden = 4 * hidden;
}

void PatchEncoder::Check(ModuleCheck& check) const {
  const Named own_heads = check.Own("heads", heads);
  const Named image = check.Own("image_size", image_size);
  const Named patch = check.Own("patch_size", patch_size);
  if (!drops_border) {
    check.ExpectMultiple(image, patch);
  } else if (check.Good({image.key, patch.key}) && patch_size > image_size) {
    check.Add(patch.key, "expected at most " + image.key + " = " + std::to_string(image_size) +
                             ", got " + std::to_string(patch_size));
  }
  check.ExpectMultiple(check.Own("hidden", hidden), own_heads);
  check.ExpectMultiple(own_heads, check.tp());
  check.ExpectMultiple(check.Own("mlp_hidden", mlp_hidden), check.tp());
  if (joined > 1 && check.Good({image.key, patch.key}) && patch_size > 0 && grid() % joined != 0) {
    check.Add(image.key, "expected a number of patches per side that is a multiple of " +
                             std::to_string(joined) + ", which the projector joins, got " +
                             std::to_string(grid()));
  }
  const std::string key = check.KeyOf("feature_layer");
  if (!check.Good({key, check.KeyOf("layers")})) return;
  if (feature_layer >= -layers - 1 && feature_layer <= layers) return;
  check.Add(key, "expected " + std::to_string(-layers - 1) + " to " + std::to_string(layers) +
                     " (the embedding and " + std::to_string(layers) + " layers), got " +
                     std::to_string(feature_layer));
}

std::vector<std::int64_t> PatchEncoder::TokensOf(int parts, int part) const {
  const std::int64_t inner = num_inner_tokens();
  const Interval rows = PartOf(rows_per_square(), parts, part);
  std::vector<std::int64_t> tokens;
  for (std::int64_t token = 0; part == 0 && token < inner; ++token) tokens.push_back(token);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    if (joined == 1) {
      tokens.push_back(inner + row);
      continue;
    }
    const std::int64_t squares = grid() / joined;
    const std::int64_t corner = row / squares * joined * grid() + row % squares * joined;
    for (std::int64_t patch = 0; patch < joined * joined; ++patch) {
      tokens.push_back(inner + corner + patch / joined * grid() + patch % joined);
    }
  }
  return tokens;
}

bool PatchEncoder::JoinRows(std::int64_t side) {
  joined = side;
  return true;
}

std::string PatchEncoder::WhyNotFrom(const ModelConfig&) const {
  return "reads images; expected a module that takes rows";
}

std::unique_ptr<const Field> PatchEncoder::field() const {
  return std::make_unique<ImageField>(image_size, image_recipe);
}

void PatchEncoder::AddPatchWeight(ParameterList& list) const {
  list.AddNormal("embeddings.patch_embedding.weight", {hidden, 3, patch_size, patch_size},
                 InverseRoot(3 * patch_size * patch_size));
}

void PatchEncoder::AddPositions(std::int64_t number, ParameterList& list) const {
  list.AddEmbedding("embeddings.position_embedding", number, hidden);
}

void PatchEncoder::AddParameters(const StagePlace& stage, ParameterList& list) const {
  // The residual stream sums 2 * layers branches, whose last linears share its variance.
  const double residual = InverseRoot(2 * layers);
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    const std::string prefix = "encoder.layers." + std::to_string(layer);
    const std::string attention = prefix + ".self_attn.";
    list.SetLayer(layer);
    list.AddLayerNorm(prefix + ".layer_norm1", hidden);
    using enum LinearRole;
    for (const auto& [name, role] :
         {std::pair{"q_proj", kQuery}, std::pair{"k_proj", kKey}, std::pair{"v_proj", kValue}}) {
      list.AddWeight(attention + name, role, hidden, hidden, Cut::kRows);
    }
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      list.AddBias(attention + name, hidden, Cut::kRows);
    }
    list.AddWeight(attention + "out_proj", kOutput, hidden, hidden, Cut::kColumns, residual);
    list.AddBias(attention + "out_proj", hidden);
    list.AddLayerNorm(prefix + ".layer_norm2", hidden);
    list.AddWeight(prefix + ".mlp.fc1", kFc1, mlp_hidden, hidden, Cut::kRows);
    list.AddBias(prefix + ".mlp.fc1", mlp_hidden, Cut::kRows);
    list.AddWeight(prefix + ".mlp.fc2", kFc2, hidden, mlp_hidden, Cut::kColumns, residual);
    list.AddBias(prefix + ".mlp.fc2", hidden);
  }
  list.SetLayer(std::nullopt);
  if (stage.last && final_norm) list.AddLayerNorm("post_layernorm", hidden);
}

void PatchEncoder::ListWork(const StagePlace& stage, const StepShape& shape,
                            const std::string& name, WorkList& work) const {
  const auto length = shape.lengths.find(name);
  const std::int64_t squares = length == shape.lengths.end() ? 0 : length->second;
  const std::int64_t rows = squares * sequence_length();
  if (stage.first) {
    const std::int64_t patches = squares * num_patches();
    const std::int64_t values = 3 * patch_size * patch_size;
    work.AddElements({.rows = patches, .width = values, .forward = 2.0});  // cut into patches
    work.AddLinear({.rows = patches, .out = hidden, .in = values, .first = true});
    work.AddElements(ResidualWork(rows, hidden));  // positions
  }
  for (std::int64_t layer = 0; layer < stage.layers.size(); ++layer) {
    work.Enter(LayerPart::kAttention);
    work.AddElements(NormWork(rows, hidden));
    work.AddLinear({.rows = rows, .out = 3 * hidden, .in = hidden, .cut = Cut::kRows});
    work.AddAttention({.rows = rows,
                       .pairs = Product(rows, sequence_length()),
                       .heads = heads,
                       .width = hidden,
                       .kv_width = hidden});
    work.Enter(LayerPart::kLayer);
    work.AddLinear({.rows = rows, .out = hidden, .in = hidden, .cut = Cut::kColumns});
    work.AddElements(ResidualWork(rows, hidden));
    work.Enter(LayerPart::kMlpUp);
    work.AddElements(NormWork(rows, hidden));
    work.AddLinear({.rows = rows, .out = mlp_hidden, .in = hidden, .cut = Cut::kRows});
    work.AddElements(
        {.rows = rows, .width = mlp_hidden, .forward = 2.0, .backward = 3.0, .inside = true});
    work.Enter(LayerPart::kMlp);
    work.AddLinear({.rows = rows, .out = hidden, .in = mlp_hidden, .cut = Cut::kColumns});
    work.Enter(LayerPart::kLayer);
    work.AddElements(ResidualWork(rows, hidden));
  }
  work.Enter(std::nullopt);
  if (stage.last && final_norm) work.AddElements(NormWork(rows, hidden));
}

LayerRow PatchEncoder::RowOf(const RankWork& work) const {
  return {.hidden = hidden,
          .attention = CeilDivide(3 * hidden + heads, work.tp),
          .heads = CeilDivide(hidden, work.tp),
          .mlp_up = CeilDivide(mlp_hidden, work.tp),
          .mlp_rest = CeilDivide(mlp_hidden, work.tp)};
}

/// Whole rows that leave are cut; the first part along cp has the other tokens, too.
std::int64_t PatchEncoder::MostTokens(const RankWork& work) const {
  const std::int64_t tokens =
      num_inner_tokens() + CeilDivide(rows_per_square(), work.cp) * joined * joined;
  return work.samples * most_length() * tokens;
}

std::int64_t PatchEncoder::KeptElements(const StagePlace& stage, const RankWork& work) const {
  const std::int64_t norm = stage.last && final_norm ? hidden : 0;
  return MostTokens(work) * (stage.layers.size() * work.KeptOf(RowOf(work)) + norm);
}

LayerSpace PatchEncoder::SpaceElements(const StagePlace& stage, const RankWork& work) const {
  if (stage.layers.empty()) return {};
  return work.SpaceOf(RowOf(work)) * MostTokens(work);
}

}  // namespace troupe
