#include "data/resize.hpp"

#include <algorithm>

#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb/stb_image_resize.h>

namespace troupe {
namespace {

/// The part of one side that stays, as fractions of it.
struct Kept {
  float begin = 0;
  float end = 1;
};

/// A side of `length` pixels, of an image whose shorter side has `shorter`, becomes
/// length * size / shorter pixels (rounded down) and loses what is over `size` on both ends.
Kept KeptPart(int length, int shorter, int size) {
  const std::int64_t resized = std::int64_t{length} * size / shorter;
  const std::int64_t begin = (resized - size) / 2;
  const auto whole = static_cast<double>(resized);
  return {static_cast<float>(static_cast<double>(begin) / whole),
          static_cast<float>(static_cast<double>(begin + size) / whole)};
}

}  // namespace

std::vector<std::uint8_t> ResizeAndCrop(const Image& image, int size) {
  if (image.width < 1 || image.height < 1 || size < 1) {
    throw ImageError("expected an image with pixels, got " + std::to_string(image.width) + " x " +
                     std::to_string(image.height));
  }
  if (image.width == size && image.height == size) return image.pixels;
  const int shorter = std::min(image.width, image.height);
  const Kept across = KeptPart(image.width, shorter, size);
  const Kept down = KeptPart(image.height, shorter, size);
  std::vector<std::uint8_t> output(3 * static_cast<std::size_t>(size) *
                                   static_cast<std::size_t>(size));
  // Only the part that stays is computed: a long thin image never becomes a huge one on the way.
  const int done = stbir_resize_region(
      image.pixels.data(), image.width, image.height, 0, output.data(), size, size, 0,
      STBIR_TYPE_UINT8, 3, STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_EDGE_CLAMP,
      STBIR_FILTER_CATMULLROM, STBIR_FILTER_CATMULLROM, STBIR_COLORSPACE_LINEAR, nullptr,
      across.begin, down.begin, across.end, down.end);
  if (done == 0) throw ImageError("could not be resized: out of memory");
  return output;
}

}  // namespace troupe
