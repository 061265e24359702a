// Bicubic resizing in integers, bit-identical to Pillow's.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image.hpp"

namespace troupe {

/// Resizes the image so that its shorter side is `size`, and returns its centre: [size, size, 3].
/// The longer side becomes longer * size / shorter, rounded down. An odd extra pixel is cut at the
/// right and at the bottom. Throws ImageError for an image without pixels.
///   source   Pillow's Resample.c: Catmull-Rom, widened where the image shrinks; 22-bit weights;
///            columns first, rounded to 8 bits before the rows
std::vector<std::uint8_t> ResizeAndCrop(const Image& image, int size);

}  // namespace troupe
