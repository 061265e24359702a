// Every step from a file to an encoder's numbers, compared with the slow image processors of
// transformers on 200 images. tools/oracle/record_images.py has made tests/oracle/images/ and
// describes its lines.
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "data/images/image.hpp"
#include "data/images/preprocessor.hpp"
#include "files/sha256.hpp"
#include "kinds/vit.hpp"

namespace troupe {
namespace {

const std::string kImages = "tests/oracle/images/";
constexpr std::int64_t kSide = 17;

template <class Number>
std::string DigestOf(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return Sha256Of(bytes).substr(0, 16);
}

/// "bytes:numbers" of an image that an encoder reads.
std::string DigestsOf(const std::string& file, const ImageRecipe& recipe) {
  const auto preprocessor = MakePreprocessor(ImageField(kSide, recipe));
  const auto size = static_cast<std::size_t>(preprocessor->LengthOf(file) * 3 * kSide * kSide);
  std::vector<float> numbers(size);
  preprocessor->Read(file, numbers);
  const std::vector<std::uint8_t> bytes = ToSquares(ReadImage(file), ImageField(kSide, recipe));
  return DigestOf(bytes) + ":" + DigestOf(numbers);
}

/// "squares:rows" of an image that is cut into tiles.
std::string PlacesDigestOf(const std::string& file) {
  ImageRecipe recipe = kClipImages;
  recipe.fit = ImageFit::kAnyres;
  recipe.grids = kUsualGrids;
  VitConfig encoder;
  encoder.image_size = kSide;
  encoder.patch_size = 3;
  encoder.image_recipe = recipe;
  const ItemPlaces places = MakePreprocessor(ImageField(kSide, recipe))->PlacesOf(file, encoder);
  std::vector<std::int64_t> packed(static_cast<std::size_t>(places.num_tokens), -1);
  for (std::size_t row = 0; row < places.rows.size(); ++row) {
    if (places.rows[row] < 0) continue;
    packed.at(static_cast<std::size_t>(places.rows[row])) = static_cast<std::int64_t>(row);
  }
  for (const std::int64_t place : places.newlines) {
    CHECK(std::exchange(packed.at(static_cast<std::size_t>(place)), -2) == -1);
  }
  return std::to_string(places.length) + ":" + DigestOf(packed);
}

TEST_CASE("200 images of every format and mode become the numbers of transformers, bit for bit",
          "[data]") {
  std::ifstream lines(kImages + "expected.txt");
  int num_images = 0;
  std::string name;
  int width = 0;
  int height = 0;
  std::string pixels;
  std::string expected;
  while (lines >> name >> width >> height >> pixels) {
    INFO(name);
    ++num_images;
    const Image image = ReadImage(kImages + name);
    CHECK(image.width == width);
    CHECK(image.height == height);
    CHECK(ReadUprightSize(kImages + name) == PixelSize{height, width});
    CHECK(DigestOf(image.pixels) == pixels);
    for (const ImageFit fit :
         {ImageFit::kCrop, ImageFit::kPad, ImageFit::kStretch, ImageFit::kAnyres}) {
      for (const Resampling resampling : {Resampling::kBicubic, Resampling::kBilinear}) {
        // Stretching is SigLIP's, with its values.
        ImageRecipe recipe = fit == ImageFit::kStretch ? kCentredImages : kClipImages;
        recipe.fit = fit;
        recipe.resampling = resampling;
        if (recipe.has_tiles()) recipe.grids = kUsualGrids;
        REQUIRE(lines >> expected);
        INFO(kImageFitWords[static_cast<std::size_t>(fit)]
             << ", " << kResamplingWords[static_cast<std::size_t>(resampling)]);
        CHECK(DigestsOf(kImages + name, recipe) == expected);
      }
    }
    REQUIRE(lines >> expected);
    CHECK(PlacesDigestOf(kImages + name) == expected);
  }
  CHECK(num_images == 200);
}

}  // namespace
}  // namespace troupe
