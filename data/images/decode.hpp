// Decoders of image formats; only image.cpp uses them.
#pragma once

#include "data/images/image.hpp"

namespace troupe {

/// The part of a file to decode.
enum class ImagePart {
  kSize,
  kOrientation,  ///< the size and the orientation
  kPixels        ///< all of it
};

/// An image as its file stores it.
struct Decoded {
  Image image;
  int orientation = 1;  ///< of EXIF, 1 to 8: how the stored pixels are to be turned
};

/// Decode with libjpeg-turbo, libpng, libwebp and giflib. Without kPixels, the image has no pixels,
/// and the file may end after its header; but a png or webp may state its orientation at its end, so
/// with kOrientation such a file must be whole. Throw ImageError.
Decoded DecodeJpeg(std::span<const std::uint8_t> bytes, ImagePart part);
Decoded DecodePng(std::span<const std::uint8_t> bytes, ImagePart part);
Decoded DecodeWebp(std::span<const std::uint8_t> bytes, ImagePart part);
Decoded DecodeGif(std::span<const std::uint8_t> bytes, ImagePart part);

}  // namespace troupe
