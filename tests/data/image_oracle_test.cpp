// Every step from a file to an encoder's numbers, compared with the slow image processors of
// transformers on 200 images. tools/oracle/record_images.py has made tests/oracle/images/ and
// describes its lines.
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/image.hpp"
#include "data/resize.hpp"
#include "files/sha256.hpp"

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
std::string DigestsOf(const Image& image, const ImageRecipe& recipe) {
  std::vector<float> numbers(3 * kSide * kSide);
  ToPixels(image, ImageField(kSide, recipe), numbers);
  return DigestOf(FitIntoSquare(image, kSide, recipe)) + ":" + DigestOf(numbers);
}

TEST_CASE("200 images of every format and mode become the numbers of transformers, bit for bit",
          "[data]") {
  std::ifstream lines(kImages + "expected.txt");
  int num_images = 0;
  std::string name;
  int width = 0;
  int height = 0;
  std::string pixels;
  while (lines >> name >> width >> height >> pixels) {
    INFO(name);
    ++num_images;
    const Image image = ReadImage(kImages + name);
    CHECK(image.width == width);
    CHECK(image.height == height);
    CHECK(DigestOf(image.pixels) == pixels);
    for (const ImageFit fit : {ImageFit::kCrop, ImageFit::kPad, ImageFit::kStretch}) {
      for (const Resampling resampling : {Resampling::kBicubic, Resampling::kBilinear}) {
        // Stretching is SigLIP's, with its values.
        ImageRecipe recipe = fit == ImageFit::kStretch ? kCentredImages : kClipImages;
        recipe.fit = fit;
        recipe.resampling = resampling;
        std::string expected;
        REQUIRE(lines >> expected);
        INFO(kImageFitWords[static_cast<std::size_t>(fit)]
             << ", " << kResamplingWords[static_cast<std::size_t>(resampling)]);
        CHECK(DigestsOf(image, recipe) == expected);
      }
    }
  }
  CHECK(num_images == 200);
}

}  // namespace
}  // namespace troupe
