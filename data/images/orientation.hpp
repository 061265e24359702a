// The orientation of an image: its place in metadata, and the turn. Both like Pillow's
// ImageOps.exif_transpose.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/images/image.hpp"

namespace troupe {

/// Returns the orientation, 1 to 8, that metadata state; 1 if they state none, or cannot be read.
///   exif   a TIFF file, after up to two "Exif\0\0"
///   xmp    XML, which counts if `exif` has no orientation
int OrientationIn(std::span<const std::uint8_t> exif, std::string_view xmp);

/// Returns whether width and height change places in an upright image.
constexpr bool IsTurned(int orientation) { return orientation >= 5; }

/// Returns the image upright: mirrored and turned as `orientation` says.
Image Upright(Image image, int orientation);

}  // namespace troupe
