// The recipe of images: from data.image_fit, the module, or the image processor of its folder.
#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "kinds/siglip.hpp"
#include "kinds/vit.hpp"
#include "tests/configs/base.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

ImageRecipe RecipeOf(const LoadedConfig& loaded) {
  return loaded.config.Find("vision")->As<VitConfig>().image_recipe;
}

TEST_CASE("data.image_fit is the fit of every module that reads images") {
  CHECK(RecipeOf(LoadConfig(kBase)) == kClipImages);
  const LoadedConfig padded = LoadConfig(kBase, {"data.image_fit=pad"});
  CHECK(RecipeOf(padded).fit == ImageFit::kPad);
  CHECK_THAT(padded.resolved_toml, Catch::Contains("\nimage_fit = \"pad\"\nimage_resampling"));
  const ScratchFolder folder;
  const LoadedConfig again = LoadConfig(folder.Write("resolved.toml", padded.resolved_toml));
  CHECK(again.config == padded.config);
}

TEST_CASE("a module with another image_fit than data.image_fit is an error") {
  CHECK(RecipeOf(LoadConfig(kBase, {"modules.vision.image_fit=stretch"})).fit ==
        ImageFit::kStretch);
  CHECK(RecipeOf(LoadConfig(kBase, {"modules.vision.image_fit=pad", "data.image_fit=pad"})).fit ==
        ImageFit::kPad);
  CHECK(ErrorsOf({"data.image_fit=crop", "modules.vision.image_fit=pad"}) ==
        "--set modules.vision.image_fit=pad: modules.vision.image_fit: expected one of "
        "data.image_fit = \"crop\" and modules.vision.image_fit = \"pad\", or both to agree");
}

TEST_CASE("images that are cut into tiles have grids, others have none") {
  CHECK(RecipeOf(LoadConfig(kBase)).grids.empty());
  const LoadedConfig usual = LoadConfig(kBase, {"data.image_fit=anyres"});
  CHECK(RecipeOf(usual).grids == kUsualGrids);
  CHECK_THAT(usual.resolved_toml,
             Catch::Contains("\nimage_grids = [\"1x2\", \"2x1\", \"2x2\", \"3x1\", \"1x3\"]"));
  const ScratchFolder folder;
  CHECK(LoadConfig(folder.Write("resolved.toml", usual.resolved_toml)).config == usual.config);
  CHECK(RecipeOf(LoadConfig(kBase, {"modules.vision.image_fit=anyres",
                                    "modules.vision.image_grids=[\"16x1\"]"}))
            .grids == std::vector<TileGrid>{{16, 1}});
  CHECK_THAT(ErrorsOf({"modules.vision.image_grids=[\"1x2\"]", "data.image_fit=anyrs"}),
             !Catch::Contains("image_grids"));
  CHECK(ErrorsOf({"modules.vision.image_grids=[\"1x2\"]"}) ==
        "--set modules.vision.image_grids=[\"1x2\"]: modules.vision.image_grids: expected none, "
        "since image_fit = \"crop\" cuts no tiles");
  for (const std::string grids :
       {"[]", "\"1x2\"", "[\"0x2\"]", "[\"1x17\"]", "[\"2\"]", "[\"1 x 2\"]", "[\"1x2x3\"]",
        "[[1, 2]]", "[\"99999999999x1\"]"}) {
    INFO(grids);
    CHECK_THAT(ErrorsOf({"modules.vision.image_grids=" + grids, "data.image_fit=anyres"}),
               Catch::Contains("image_grids: expected a list of grids, rows x columns from 1 to "
                               "16, like [\"1x2\", \"2x1\"], got "));
  }
}

TEST_CASE("an encoder of tiles needs a projector and no class token") {
  std::string text = BytesOf(kBase);
  const std::size_t through = text.find("through");
  REQUIRE(through != text.npos);
  text.erase(through, text.find('\n', through) - through);
  const ScratchFolder folder;
  const std::string file = folder.Write("job.toml", text);
  CHECK_THAT(ErrorOf([&] { LoadConfig(file, {"data.image_fit=anyres"}); }),
             Catch::Contains("through: missing, expected a projector: \"vision\" cuts images into "
                             "tiles, and the newline row at the end of their lines belongs to it"));
  // A patch size that is missing is the only error.
  const std::size_t patch = text.find("patch_size");
  REQUIRE(patch != text.npos);
  text.erase(patch, text.find('\n', patch) - patch);
  const std::string other = folder.Write("other.toml", text);
  CHECK_THAT(ErrorOf([&] { LoadConfig(other, {"data.image_fit=anyres"}); }),
             Catch::Contains("patch_size: missing"));
  CHECK_THAT(ErrorsOf({"data.image_fit=anyres", "modules.vision.class_token=true"}),
             Catch::EndsWith("class_token: expected false, since the rows of tiles become lines of "
                             "patches and the class token has no place in them"));
}

TEST_CASE("means and deviations are three numbers of their ranges") {
  CHECK(RecipeOf(LoadConfig(kBase, {"modules.vision.image_mean=[0, 0.25, 1]"})).mean ==
        std::array<double, 3>{0, 0.25, 1});
  CHECK_THAT(ErrorsOf({"modules.vision.image_mean=[0.5, 0.25]"}),
             Catch::EndsWith("expected three numbers: red, green, blue, got the list [0.5, 0.25]"));
  CHECK_THAT(ErrorsOf({"modules.vision.image_std=[0.5, 0, 0.25]"}),
             Catch::EndsWith("image_std: expected a number above 0, got 0"));
  CHECK_THAT(ErrorsOf({"modules.vision.image_mean=[0.5, 1.5, 0.25]"}),
             Catch::EndsWith("expected a number of at least 0 and at most 1, got 1.5"));
}

/// A folder of a SigLIP whose images are stretched with other means.
class SiglipFolder {
 public:
  SiglipFolder() {
    folder_.Write("config.json",
                  R"({"model_type": "siglip_vision_model", "image_size": 32, "patch_size": 8,
                      "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4})");
    folder_.Write("preprocessor_config.json",
                  R"({"image_processor_type": "SiglipImageProcessor", "resample": 2,
                      "size": {"height": 32, "width": 32}, "image_mean": [0.1, 0.2, 0.3]})");
    folder_.Write("job.toml", R"(schema = 1
[cluster]
ranks = 2
[modules.vision]
weights = "hf:."
ranks = "0"
[modules.language]
kind = "llama"
ranks = "1"
vocab = 260
hidden = 64
layers = 1
heads = 4
kv_heads = 2
mlp_hidden = 64
context = 96
[[edges]]
from = "vision"
to = "language"
[data]
train = "train.json"
)");
  }
  const ScratchFolder& folder() const { return folder_; }
  LoadedConfig Load(const std::vector<std::string>& overrides = {}) const {
    return LoadConfig(folder_ / "job.toml", overrides);
  }

 private:
  ScratchFolder folder_;
};

TEST_CASE("the image processor of a folder gives the recipe, and stated keys win") {
  const SiglipFolder folder;
  const auto recipe = [&](const std::vector<std::string>& overrides = {}) {
    return folder.Load(overrides).config.Find("vision")->As<SiglipConfig>().image_recipe;
  };
  CHECK(recipe() == ImageRecipe{.fit = ImageFit::kStretch,
                                .resampling = Resampling::kBilinear,
                                .mean = {0.1, 0.2, 0.3}});
  CHECK(recipe({"data.image_fit=pad"}).fit == ImageFit::kPad);
  CHECK(recipe({"data.image_fit=pad"}).resampling == Resampling::kBilinear);
  CHECK(recipe({"modules.vision.image_fit=crop"}).fit == ImageFit::kCrop);
  CHECK(recipe({"modules.vision.image_resampling=bicubic"}).resampling == Resampling::kBicubic);
}

TEST_CASE("the origin of a recipe is the file of the image processor") {
  const SiglipFolder folder;
  const LoadedConfig loaded = folder.Load();
  const std::string file = folder.folder() / "preprocessor_config.json";
  for (const std::string key : {"image_fit", "image_resampling", "image_mean", "image_std"}) {
    CHECK(loaded.origins.at("modules.vision." + key).place.file == file);
  }
  CHECK_THAT(loaded.origins.at("modules.vision.image_size").place.file,
             Catch::EndsWith("/config.json"));
  REQUIRE(loaded.folders.size() == 1);
  CHECK(loaded.folders[0].images.file == file);
  // What a run keeps says it all.
  const LoadedConfig again = LoadConfig(folder.folder().Write("again.toml", loaded.resolved_toml));
  CHECK(again.config == loaded.config);
}

TEST_CASE("a folder without an image processor leaves the recipe of the kind") {
  const SiglipFolder folder;
  std::filesystem::remove(folder.folder() / "preprocessor_config.json");
  const LoadedConfig loaded = folder.Load();
  CHECK(loaded.config.Find("vision")->As<SiglipConfig>().image_recipe == kCentredImages);
  CHECK(loaded.origins.at("modules.vision.image_fit").place.file.empty());
}

TEST_CASE("an image processor that does not fit is an error at the weights") {
  const SiglipFolder folder;
  folder.folder().Write("preprocessor_config.json", R"({"size": 64})");
  CHECK_THAT(ErrorOf([&] { folder.Load(); }),
             Catch::Contains("job.toml:5:11: modules.vision.weights: ") &&
                 Catch::EndsWith("preprocessor_config.json: size: expected 32, the encoder's "
                                 "image_size, got 64"));
}

}  // namespace
}  // namespace troupe
