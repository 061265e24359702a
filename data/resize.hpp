// Bicubic resizing in integers, equal to Pillow's bit by bit.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image.hpp"

namespace troupe {

/// The image resized so that its shorter side is `size`, and the centre of that: [size, size, 3].
/// The longer side becomes longer * size / shorter, rounded down; an odd pixel more is cut at the
/// right and at the bottom. Throws ImageError for an image without pixels.
///   source   Pillow's Resample.c: Catmull-Rom, widened where the image shrinks; weights of 22 bits;
///            columns first, rounded to 8 bits before the rows
std::vector<std::uint8_t> ResizeAndCrop(const Image& image, int size);

}  // namespace troupe
