// Fits images into squares, and resizes them: in integers, bit-identical to Pillow's.
#pragma once

#include <cstdint>
#include <vector>

#include "data/images/image.hpp"
#include "data/images/tiles.hpp"

namespace troupe {

/// Returns the image as one square, as `recipe`, which has no tiles, states: [size, size, 3].
///   crop      The longer side becomes longer * size / shorter, rounded down. An odd extra pixel is
///             cut at the right and at the bottom.
///   pad       The fill is int(255 * mean). An odd extra pixel is added at the right or at the bottom.
/// Throws ImageError for an image without pixels. Needs memory for the output and a few rows.
///   source    Pillow's Resample.c: Catmull-Rom or a triangle, widened where the image shrinks;
///             22-bit weights; one direction after the other, rounded to 8 bits between them
std::vector<std::uint8_t> FitIntoSquare(const Image& image, std::int64_t size,
                                        const ImageRecipe& recipe);

/// Returns the image with both sides resized: [height, width, 3]. Throws ImageError for an image
/// without pixels.
std::vector<std::uint8_t> Resized(const Image& image, PixelSize size, Resampling resampling);

}  // namespace troupe
