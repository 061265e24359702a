// An image file, decoded and made ready for an encoder.
#include "data/image.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  try {
    const Image image = DecodeImage({data, size});
    fuzz::Require(image.pixels.size() == static_cast<std::size_t>(image.width) *
                                             static_cast<std::size_t>(image.height) * 3);
    if (image.pixels.size() > (1U << 20U)) return 0;  // resizing is not what reads the bytes
    std::vector<float> pixels(3 * 16 * 16);
    for (const ImageFit fit : {ImageFit::kCrop, ImageFit::kPad, ImageFit::kStretch}) {
      ToPixels(image, ImageField(16, {.fit = fit}), pixels);
    }
  } catch (const ImageError&) {
  }
  return 0;
}
