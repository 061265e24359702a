// JPEG by libjpeg-turbo; only image.cpp uses it.
#pragma once

#include "data/image.hpp"

namespace troupe {

/// Throws ImageError.
Image DecodeJpeg(std::span<const std::uint8_t> bytes);

/// Reads the header only; pixels may be missing. Throws ImageError.
ImageFacts JpegFacts(std::span<const std::uint8_t> bytes);

}  // namespace troupe
