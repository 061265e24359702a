// Decoders of image formats; only image.cpp uses them.
#pragma once

#include "data/image.hpp"

namespace troupe {

/// The part of a file to decode.
enum class ImagePart { kSize, kPixels };

/// Decode with libjpeg-turbo and libpng. With kSize, the image has no pixels, and the file may end
/// after its header. Throw ImageError.
Image DecodeJpeg(std::span<const std::uint8_t> bytes, ImagePart part);
Image DecodePng(std::span<const std::uint8_t> bytes, ImagePart part);

}  // namespace troupe
