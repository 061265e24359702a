#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "kinds/llama.hpp"
#include "kinds/siglip.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

constexpr const char* kWhole = "tests/oracle/llava_siglip_qwen3";

std::string Absolute(const std::string& folder) {
  return std::filesystem::absolute(folder).string();
}

/// A model of two modules; `vision`, `language` and `edge` are keys of theirs.
std::string Toml(const std::string& vision = "", const std::string& language = "",
                 const std::string& edge = "") {
  return "cluster.ranks = 2\nmodel.from = \"hf:" + Absolute(kWhole) +
         "\"\n[modules.vision]\nranks = \"0\"\n" + vision +
         "\n[modules.language]\nranks = \"1\"\n" + language +
         "\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n" + edge +
         "\n[data]\ntrain = \"none.json\"\ntokenizer = \"sentencepiece:none.model\"\n";
}

LoadedConfig Load(const std::string& toml) {
  const ScratchFolder folder;
  return LoadConfig(folder.Write("run.toml", toml));
}

TEST_CASE("a whole model gives modules and projector their kinds, sizes and weights") {
  const LoadedConfig loaded = Load(Toml());
  const Config& config = loaded.config;
  const auto& vision = config.modules[0].As<SiglipConfig>();
  CHECK(vision.image_size == 8);
  CHECK(vision.feature_layer == -2);
  const auto& language = config.modules[1].As<LlamaConfig>();
  CHECK(language.head_norms);
  CHECK(language.head_dim == 4);
  const ProjectorConfig& projector = config.edges[0].through.value();
  CHECK(projector.kind == ProjectorKind::kMlp2);
  CHECK(projector.hidden == 8);
  const std::string weights = "hf:" + std::string(kWhole);
  CHECK(config.model.from == weights);
  CHECK(config.modules[0].weights == weights);
  CHECK(config.modules[1].weights == weights);
  CHECK(projector.weights == weights);
  REQUIRE(loaded.folders.size() == 3);
  CHECK(loaded.folders[2].part == "edges.vision.language.through");
  const ScratchFolder again;
  CHECK(LoadConfig(again.Write("resolved.toml", loaded.resolved_toml)).config == config);
}

TEST_CASE("a LLaVA-NeXT gives its grids, and another fit drops them") {
  const std::string folder = Absolute("tests/oracle/llava_next_clip_llama");
  const auto load = [&](const std::string& vision) {
    std::string toml = Toml(vision);
    toml.replace(toml.find(Absolute(kWhole)), Absolute(kWhole).size(), folder);
    return Load(toml);
  };
  LoadedConfig loaded = load("");
  const ImageRecipe& recipe = *loaded.config.modules[0].model->images();
  CHECK(recipe.fit == ImageFit::kAnyres);
  CHECK(recipe.grids == std::vector<TileGrid>{{1, 2}, {2, 1}, {2, 2}, {3, 1}});
  CHECK_THAT(loaded.origins.at("modules.vision.image_grids").place.file,
             Catch::EndsWith("/config.json"));
  const ScratchFolder again;
  CHECK(LoadConfig(again.Write("resolved.toml", loaded.resolved_toml)).config == loaded.config);
  LoadedConfig padded = load("image_fit = \"pad\"");
  CHECK(padded.config.modules[0].model->images()->grids.empty());
  LoadedConfig stated = load("image_grids = [\"2x2\"]");
  CHECK(stated.config.modules[0].model->images()->grids == std::vector<TileGrid>{{2, 2}});
}

TEST_CASE("what the user states wins over a whole model") {
  const Config config =
      Load(Toml("feature_layer = -1", "context = 100", "through = { on = \"to\", frozen = true }"))
          .config;
  CHECK(config.modules[0].As<SiglipConfig>().feature_layer == -1);
  CHECK(config.modules[1].As<LlamaConfig>().context == 100);
  CHECK(config.edges[0].through->on == ProjectorEnd::kTo);
  CHECK(config.edges[0].through->frozen);
  CHECK(config.edges[0].through->weights == "hf:" + std::string(kWhole));
}

TEST_CASE("a projector of a stated kind starts from random values") {
  const Config config = Load(Toml("", "", "through = { kind = \"linear\" }")).config;
  CHECK(config.edges[0].through->kind == ProjectorKind::kLinear);
  CHECK_FALSE(config.edges[0].through->weights);
}

TEST_CASE("a module with weights of its own takes no part of the whole, and no projector") {
  const std::string own = "tests/oracle/clip";
  const Config config = Load(Toml("weights = \"hf:" + Absolute(own) + "\"", "",
                                  "through = { kind = \"mlp2\", hidden = 4 }"))
                            .config;
  CHECK(config.modules[0].weights == "hf:" + own);
  CHECK(config.modules[1].weights == "hf:" + std::string(kWhole));
  CHECK_FALSE(config.edges[0].through->weights);
}

TEST_CASE("a resolved file is read where its folders are not") {
  std::string toml = Load(Toml()).resolved_toml;
  const std::string folder = Absolute(kWhole);
  for (std::size_t at; (at = toml.find(folder)) != std::string::npos;) {
    toml.replace(at, folder.size(), "/nowhere");
  }
  const Config config = Load(toml).config;
  CHECK(config.modules[1].weights == "hf:/nowhere");
  CHECK(config.edges[0].through->weights == "hf:/nowhere");
  CHECK(config.edges[0].through->hidden == 8);
}

TEST_CASE("a folder that is no whole model is refused for the projector") {
  const std::string clip = "tests/oracle/clip";
  std::string toml = Toml();
  toml.replace(toml.find(kWhole), std::string(kWhole).size(), clip);
  CHECK_THROWS_WITH(
      Load(toml),
      Catch::Contains(
          "through.weights: " + clip +
          "/config.json: model_type: expected a whole model, \"llava\", \"llava_next\" or "
          "\"llava_llama\", got \"clip_vision_model\""));
}

}  // namespace
}  // namespace troupe
