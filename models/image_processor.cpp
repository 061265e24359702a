#include "models/image_processor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "files/strict_json.hpp"
#include "kinds/patch_encoder.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// A class of transformers, with the values that it takes where the file leaves a key out.
/// Source: transformers 4.57, image_processing_clip.py, _siglip.py, _llava.py and _llava_next.py.
struct Processor {
  std::string_view name;
  bool crops;  ///< its `size` is that of the shorter side by default, and it crops
  bool pads;   ///< its `do_pad` makes squares
  ImageRecipe recipe;
  bool tiles = false;  ///< it cuts images into tiles
};
constexpr std::int64_t kUsualSize = 224;
const auto kProcessors = std::to_array<Processor>({
    {"CLIPImageProcessor", true, false, kClipImages},
    {"SiglipImageProcessor", false, false, kCentredImages},
    {"LlavaImageProcessor", true, true, kClipImages},
    {"LlavaNextImageProcessor", true, false, kClipImages, true},
});

std::string ProcessorNames() {
  return ListedWithOr(
      std::vector(kProcessors.begin(), kProcessors.end()),
      [](const Processor& processor) { return QuoteText(std::string(processor.name)); });
}

/// Returns the processor that the file names, else the one with the recipe of the module's kind.
const Processor& ProcessorOf(const ForeignConfig& config, const ImageRecipe& usual) {
  const auto* found = usual.has_tiles() ? std::ranges::find(kProcessors, true, &Processor::tiles)
                                        : std::ranges::find(kProcessors, usual, &Processor::recipe);
  const bool old = !config.Has("image_processor_type") && config.Has("feature_extractor_type");
  const std::string key = old ? "feature_extractor_type" : "image_processor_type";
  const std::string stated = config.Word(key, std::string(found->name));
  std::string name = stated;
  // transformers loads any of these as the other.
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (name == "CLIPFeatureExtractor") name = "CLIPImageProcessor";
  found = std::ranges::find(kProcessors, name, &Processor::name);
  if (found != kProcessors.end()) return *found;
  config.Refuse(key, "expected " + ProcessorNames() + ", got " + QuoteText(stated));
}

void ExpectTrue(const ForeignConfig& config, const std::string& key, const std::string& reason) {
  if (!config.Flag(key, true)) config.Refuse(key, "expected true, got false: " + reason);
}

class SizeReader {
 public:
  SizeReader(const ForeignConfig& config, std::int64_t expected)
      : config_(config), expected_(expected) {}

  /// Reads a number, {"shortest_edge": S} or {"height": S, "width": S}. Returns whether S is that of
  /// the shorter side only. `number_is_shorter`: the meaning of a number.
  bool Read(const std::string& key, bool number_is_shorter) const {
    if (!config_.IsObject(key)) {
      Expect(config_, key, config_.Integer(key, kUsualSize));
      return number_is_shorter;
    }
    const auto size = config_.Part(key);
    if (size->Has("longest_edge")) size->Refuse("longest_edge", kNotSupportedYet);
    const bool shorter = size->Has("shortest_edge");
    for (const char* side :
         shorter ? std::vector{"shortest_edge"} : std::vector{"height", "width"}) {
      if (!size->Has(side)) size->Refuse(side, "expected " + Wanted() + ", found none");
      Expect(*size, side, size->Integer(side, 0));
    }
    return shorter;
  }

 private:
  std::string Wanted() const { return std::to_string(expected_) + ", the encoder's image_size"; }
  void Expect(const ForeignConfig& place, const std::string& key, std::int64_t size) const {
    if (size == expected_) return;
    place.Refuse(key, "expected " + Wanted() + ", got " + std::to_string(size));
  }

  const ForeignConfig& config_;
  std::int64_t expected_;
};

ImageFit ReadFit(const ForeignConfig& config, const Processor& processor, std::int64_t size) {
  ExpectTrue(config, "do_resize", "an encoder reads images of one size");
  const SizeReader sizes(config, size);
  const bool crops = processor.crops && config.Flag("do_center_crop", true);
  const bool shorter = sizes.Read("size", processor.crops);
  if (crops && sizes.Read("crop_size", false)) {
    config.Refuse("crop_size", "expected height and width");
  }
  if (processor.tiles) return ImageFit::kAnyres;
  if (processor.pads && config.Flag("do_pad", false)) return ImageFit::kPad;
  if (!shorter) return ImageFit::kStretch;
  if (!processor.crops) config.Refuse("size", "expected height and width");
  if (!crops) config.Refuse("do_center_crop", "expected true, got false: an encoder reads squares");
  return ImageFit::kCrop;
}

Resampling ReadResampling(const ForeignConfig& config) {
  // Numbers of Pillow.
  switch (config.Integer("resample", 3)) {
    case 3:
      return Resampling::kBicubic;
    case 2:
      return Resampling::kBilinear;
    default:
      config.Refuse("resample", "expected 3 (bicubic) or 2 (bilinear), got " +
                                    std::to_string(config.Integer("resample", 3)) + ", which is " +
                                    kNotSupportedYet);
  }
}

void ReadNormalisation(const ForeignConfig& config, const ImageRecipe& usual, ImageRecipe& recipe) {
  ExpectTrue(config, "do_rescale", "an encoder reads numbers near 0");
  constexpr double kFactor = 1.0 / 255.0;
  const double factor = config.Number("rescale_factor", kFactor);
  if (std::abs(factor - kFactor) > 1e-9) {
    config.Refuse("rescale_factor", "expected 1 / 255, got " + Formatted("%g", factor));
  }
  recipe.mean = config.Channels("image_mean", usual.mean);
  recipe.deviation = config.Channels("image_std", usual.deviation);
  for (const double mean : recipe.mean) {
    if (!(mean >= 0 && mean <= 1)) config.Refuse("image_mean", "expected numbers from 0 to 1");
  }
  for (const double deviation : recipe.deviation) {
    if (!(deviation > 0)) config.Refuse("image_std", "expected numbers above 0");
  }
  if (config.Flag("do_normalize", true)) return;
  if (recipe.fit == ImageFit::kPad) {
    config.Refuse("do_normalize",
                  "expected true with do_pad, which fills with the mean, got false");
  }
  recipe.mean = {0, 0, 0};
  recipe.deviation = {1, 1, 1};
}

/// `grids` are those of config.json, if it has any.
void ReadGrids(const ForeignConfig& config, std::int64_t size, std::vector<TileGrid>& grids) {
  const std::vector<TileGrid> own = ReadForeignGrids(config, size);
  if (!grids.empty() && own != grids) {
    config.Refuse("image_grid_pinpoints", "expected the same as in config.json");
  }
  grids = own;
}

/// Returns the file that describes an image processor, if the folder has one.
std::optional<HfConfig> FindFile(const std::string& folder) {
  for (const std::string name : {"preprocessor_config.json", "processor_config.json"}) {
    std::error_code unknown;
    if (!std::filesystem::exists(std::filesystem::path(folder) / name, unknown)) continue;
    HfConfig config = HfConfig::Read(folder, name);
    const bool whole = name == "preprocessor_config.json";  // the other one has other parts, too
    if (whole || config.Has("image_processor")) return config;
  }
  return std::nullopt;
}

}  // namespace

FolderImages ReadImageProcessor(const std::string& folder, ModelConfig& model) {
  const auto field = model.field();
  const auto* const images = dynamic_cast<const ImageField*>(field.get());
  ImageRecipe* const recipe = model.images();
  if (images == nullptr || recipe == nullptr) return {};
  const std::optional<HfConfig> file = FindFile(folder);
  if (!file) return {};
  const auto part = file->Part("image_processor");
  const ForeignConfig& config = part == nullptr ? *file : *part;
  const Processor& processor = ProcessorOf(config, *recipe);
  if (recipe->has_tiles() && !processor.tiles) {
    config.Refuse("image_processor_type",
                  "expected \"LlavaNextImageProcessor\", since config.json has model_type = "
                  "\"llava_next\", got " +
                      QuoteText(std::string(processor.name)));
  }
  recipe->fit = ReadFit(config, processor, images->size());
  if (processor.tiles) ReadGrids(config, images->size(), recipe->grids);
  recipe->resampling = ReadResampling(config);
  ReadNormalisation(config, processor.recipe, *recipe);
  // Pixels are RGB before any processor sees them.
  if (config.Has("do_convert_rgb")) static_cast<void>(config.Flag("do_convert_rgb", true));
  return {file->path(), file->defaulted()};
}

}  // namespace troupe
