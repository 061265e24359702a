// An image file, decoded and made ready for an encoder.
#include "data/images/image.hpp"
#include "tests/fuzz/scratch.hpp"

/// The size that is read without decoding is the size of the decoded image.
static void CheckSize(std::span<const std::uint8_t> bytes, const troupe::Image& image) {
  try {
    troupe::fuzz::Require(troupe::UprightSizeOf(bytes) ==
                          troupe::PixelSize{image.height, image.width});
  } catch (const troupe::ImageError&) {
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  try {
    const Image image = DecodeImage({data, size});
    fuzz::Require(image.pixels.size() == static_cast<std::size_t>(image.width) *
                                             static_cast<std::size_t>(image.height) * 3);
    CheckSize({data, size}, image);
    if (image.pixels.size() > (1U << 20U)) return 0;  // resizing is not what reads the bytes
    std::vector<float> pixels(3 * 16 * 16);
    for (const ImageFit fit : {ImageFit::kCrop, ImageFit::kPad, ImageFit::kStretch}) {
      ToPixels(image, ImageField(16, {.fit = fit}), pixels);
    }
    const ImageField tiles(16, {.fit = ImageFit::kAnyres, .grids = kUsualGrids});
    const TileGrid grid = GridOf(tiles, {image.height, image.width});
    pixels.resize(static_cast<std::size_t>(1 + grid.num_tiles()) * 3 * 16 * 16);
    ToPixels(image, tiles, pixels);
    const ItemPlaces places = PlacesOfTiles({image.height, image.width}, grid, 4);
    fuzz::Require(places.num_tokens >= 16 && std::ssize(places.rows) == places.length * 16);
  } catch (const ImageError&) {
    try {  // damaged: its size may be known all the same
      UprightSizeOf({data, size});
    } catch (const ImageError&) {
    }
  }
  return 0;
}
