#include "models/image_processor.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "kinds/siglip.hpp"
#include "kinds/vit.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

struct Read {
  ImageRecipe recipe;
  FolderImages images;
};

/// Reads `json` as the image processor of an encoder of 336 pixels.
template <class Encoder = VitConfig>
Read ReadRecipe(const std::string& json, const std::string& name = "preprocessor_config.json") {
  const ScratchFolder folder;
  folder.Write(name, json);
  Encoder encoder;
  encoder.image_size = 336;
  FolderImages images = ReadImageProcessor(folder.path(), encoder);
  if (!images.file.empty()) CHECK(images.file == folder / name);
  return {encoder.image_recipe, std::move(images)};
}

template <class Encoder = VitConfig>
std::string RefusalOf(const std::string& json) {
  const std::string error = ErrorOf([&] { ReadRecipe<Encoder>(json); });
  const std::string file = "preprocessor_config.json: ";
  return error.substr(error.find(file) == error.npos ? 0 : error.find(file) + file.size());
}

/// The file of openai/clip-vit-large-patch14-336.
constexpr const char* kClip336 = R"({
  "crop_size": 336, "do_center_crop": true, "do_normalize": true, "do_resize": true,
  "feature_extractor_type": "CLIPFeatureExtractor",
  "image_mean": [0.48145466, 0.4578275, 0.40821073],
  "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 336})";

/// The file of google/siglip-so400m-patch14-384, with another size.
constexpr const char* kSiglip = R"({
  "do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
  "image_processor_type": "SiglipImageProcessor", "image_std": [0.5, 0.5, 0.5],
  "processor_class": "SiglipProcessor", "resample": 3, "rescale_factor": 0.00392156862745098,
  "size": {"height": 336, "width": 336}})";

TEST_CASE("CLIP's processor crops, SigLIP's stretches") {
  CHECK(ReadRecipe(kClip336).recipe == kClipImages);
  ImageRecipe stretched = kCentredImages;
  stretched.fit = ImageFit::kStretch;
  CHECK(ReadRecipe<SiglipConfig>(kSiglip).recipe == stretched);
  // The encoder's kind does not matter where the file names its processor.
  CHECK(ReadRecipe(kSiglip).recipe == stretched);
}

TEST_CASE("LLaVA's processor pads if it says so") {
  const std::string rest = R"("image_processor_type": "LlavaImageProcessorFast",
      "crop_size": {"height": 336, "width": 336}, "size": {"shortest_edge": 336}})";
  CHECK(ReadRecipe(R"({"do_pad": true, )" + rest).recipe.fit == ImageFit::kPad);
  CHECK(ReadRecipe(R"({"do_pad": false, )" + rest).recipe.fit == ImageFit::kCrop);
  CHECK(ReadRecipe("{" + rest).recipe.fit == ImageFit::kCrop);
}

/// The file of llava-hf/llava-v1.6-vicuna-7b-hf.
constexpr const char* kNext = R"({
  "aspect_ratio_setting": "anyres", "crop_size": {"height": 336, "width": 336},
  "do_center_crop": true, "do_convert_rgb": true, "do_normalize": true, "do_rescale": true,
  "do_resize": true,
  "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
  "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_processor_type": "LlavaNextImageProcessor",
  "image_std": [0.26862954, 0.26130258, 0.27577711], "processor_class": "LlavaNextProcessor",
  "resample": 3, "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 336}})";

TEST_CASE("LLaVA-NeXT's processor cuts tiles") {
  ImageRecipe tiles = kClipImages;
  tiles.fit = ImageFit::kAnyres;
  tiles.grids = kUsualGrids;
  CHECK(ReadRecipe(kNext).recipe == tiles);
  const std::string named = R"({"image_processor_type": "LlavaNextImageProcessor",
      "size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336})";
  CHECK(ReadRecipe(named + "}").recipe.grids == kUsualGrids);
  CHECK(ReadRecipe(named + R"(, "image_grid_pinpoints": [[336, 1680]]})").recipe.grids ==
        std::vector<TileGrid>{{1, 5}});
  const std::string multiples =
      "image_grid_pinpoints: expected multiples of the encoder's image_size, 336, up to 16 times "
      "it, got ";
  const auto refusal = [&](const std::string& grids) {
    return RefusalOf(named + ", \"image_grid_pinpoints\": " + grids + "}");
  };
  CHECK(refusal("[[336, 384]]") == multiples + "384");
  CHECK(refusal("[[0, 336]]") == multiples + "0");
  CHECK(refusal("[[336, 5712]]") == multiples + "5712");
  CHECK(refusal("[[336, -336]]") == multiples + "-336");
  CHECK(refusal("[[336, 4611686018427387904]]") == multiples + "4611686018427387904");
  VitConfig empty;
  empty.image_size = 0;
  const ScratchFolder folder;
  folder.Write("preprocessor_config.json", R"({"image_processor_type": "LlavaNextImageProcessor",
      "size": 0, "crop_size": 0, "image_grid_pinpoints": [[0, 0]]})");
  CHECK_THROWS_WITH(ReadImageProcessor(folder.path(), empty),
                    Catch::Contains("expected multiples of the encoder's image_size, 0"));
  CHECK(refusal("[336, 672]") ==
        "image_grid_pinpoints: expected a list of pairs of whole numbers, got \"[336,672]\"");
  CHECK(refusal("[]") ==
        "image_grid_pinpoints: expected a list of pairs of whole numbers, got \"[]\"");
}

TEST_CASE("config.json and the image processor must agree on tiles") {
  const auto refusal = [](const std::string& json) {
    const ScratchFolder folder;
    folder.Write("preprocessor_config.json", json);
    VitConfig encoder;
    encoder.image_size = 336;
    encoder.image_recipe.fit = ImageFit::kAnyres;
    encoder.image_recipe.grids = {{1, 2}};
    const std::string error = ErrorOf([&] { ReadImageProcessor(folder.path(), encoder); });
    return error.substr(error.find(": ") + 2);
  };
  CHECK(refusal(kClip336) ==
        "image_processor_type: expected \"LlavaNextImageProcessor\", since config.json has "
        "model_type = \"llava_next\", got \"CLIPImageProcessor\"");
  CHECK(refusal(kNext) == "image_grid_pinpoints: expected the same as in config.json");
}

TEST_CASE("every value of an image processor is read") {
  const ImageRecipe recipe = ReadRecipe(R"({"image_processor_type": "CLIPImageProcessor",
      "do_center_crop": false, "size": {"height": 336, "width": 336}, "resample": 2,
      "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "do_convert_rgb": null})")
                                 .recipe;
  CHECK(recipe == ImageRecipe{.fit = ImageFit::kStretch,
                              .resampling = Resampling::kBilinear,
                              .mean = {0.1, 0.2, 0.3},
                              .deviation = {0.4, 0.5, 0.6}});
  const std::string sizes = R"({"size": 336, "crop_size": 336, )";
  CHECK(ReadRecipe(sizes + R"("image_mean": 0.25})").recipe.mean ==
        std::array<double, 3>{0.25, 0.25, 0.25});
  const ImageRecipe plain = ReadRecipe(sizes + R"("do_normalize": false})").recipe;
  CHECK(plain.mean == std::array<double, 3>{0, 0, 0});
  CHECK(plain.deviation == std::array<double, 3>{1, 1, 1});
}

TEST_CASE("a part of processor_config.json is read where there is no other file") {
  const std::string part = std::string(R"({"processor_class": "X", "image_processor": )") + kSiglip;
  const Read read = ReadRecipe(part + "}", "processor_config.json");
  CHECK(read.recipe.fit == ImageFit::kStretch);
  const Read none = ReadRecipe(R"({"patch_size": 14})", "processor_config.json");
  CHECK(none.images.file.empty());
  CHECK(none.recipe == kClipImages);
}

TEST_CASE("keys that the file leaves out have the values of its processor, and are listed") {
  const Read read = ReadRecipe(
      R"({"image_processor_type": "SiglipImageProcessor", "size": 336, "resample": null})");
  CHECK(read.recipe.mean == kCentredImages.mean);
  std::string defaulted;
  for (const DefaultedKey& key : read.images.defaulted) {
    defaulted += key.key + "=" + key.value + " ";
  }
  CHECK(defaulted ==
        "do_resize=true resample=3 do_rescale=true rescale_factor=0.00392156862745098 "
        "image_mean=[0.5,0.5,0.5] image_std=[0.5,0.5,0.5] do_normalize=true ");
  // A file without a class: that of the encoder's kind.
  CHECK(ReadRecipe(R"({"size": 336, "crop_size": 336})").recipe == kClipImages);
  CHECK(ReadRecipe<SiglipConfig>(R"({"size": 336})").recipe.fit == ImageFit::kStretch);
}

TEST_CASE("an image processor that contradicts its encoder is refused by key") {
  const std::string wanted = "expected 336, the encoder's image_size, got 224";
  CHECK(RefusalOf(R"({"crop_size": 336})") == "size: " + wanted);
  CHECK(RefusalOf(R"({"size": {"shortest_edge": 224}})") == "size.shortest_edge: " + wanted);
  CHECK(RefusalOf(R"({"size": {"height": 336, "width": 224}})") == "size.width: " + wanted);
  CHECK(RefusalOf(R"({"size": 336, "crop_size": {"height": 224, "width": 336}})") ==
        "crop_size.height: " + wanted);
  CHECK(RefusalOf(R"({"size": {"height": 336}})") ==
        "size.width: expected 336, the encoder's image_size, found none");
}

TEST_CASE("steps that are not supported are refused by key") {
  const auto of = [](const std::string& keys) {
    return RefusalOf(R"({"size": 336, "crop_size": 336, )" + keys + "}");
  };
  CHECK(of("\"resample\": 1") ==
        "resample: expected 3 (bicubic) or 2 (bilinear), got 1, which is not supported yet");
  CHECK(of("\"do_resize\": false") ==
        "do_resize: expected true, got false: an encoder reads images of one size");
  CHECK(of("\"do_center_crop\": false") ==
        "do_center_crop: expected true, got false: an encoder reads squares");
  CHECK(of("\"do_rescale\": false") ==
        "do_rescale: expected true, got false: an encoder reads numbers near 0");
  CHECK(of("\"rescale_factor\": 0.5") == "rescale_factor: expected 1 / 255, got 0.5");
  CHECK(of("\"image_mean\": [1.5, 0, 0]") == "image_mean: expected numbers from 0 to 1");
  CHECK(of("\"image_std\": [0.5, 0, 0.5]") == "image_std: expected numbers above 0");
  CHECK(of("\"image_std\": [0.5, 0.5]") == "image_std: expected three numbers, got \"[0.5,0.5]\"");
  CHECK(of("\"image_processor_type\": \"Siglip2ImageProcessor\"") ==
        "image_processor_type: expected \"CLIPImageProcessor\", \"SiglipImageProcessor\", "
        "\"LlavaImageProcessor\" or \"LlavaNextImageProcessor\", got \"Siglip2ImageProcessor\"");
  CHECK(of("\"image_processor_type\": \"LlavaImageProcessor\", \"do_pad\": true, \"do_normalize\": "
           "false") ==
        "do_normalize: expected true with do_pad, which fills with the mean, got false");
  CHECK(RefusalOf(R"({"size": {"longest_edge": 336}})") == "size.longest_edge: not supported yet");
  CHECK(RefusalOf<SiglipConfig>(R"({"size": {"shortest_edge": 336}})") ==
        "size: expected height and width");
  CHECK(RefusalOf(R"({"size": "336"})") == "size: expected a whole number, got \"\\\"336\\\"\"");
  CHECK(RefusalOf("[]").find("does not begin with '{'") != std::string::npos);
}

TEST_CASE("a module that reads no images has no image processor") {
  const ScratchFolder folder;
  folder.Write("preprocessor_config.json", "nonsense");
  LlamaConfig llama;
  CHECK(ReadImageProcessor(folder.path(), llama).file.empty());
}

}  // namespace
}  // namespace troupe
