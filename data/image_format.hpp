// Decoders of image formats; only image.cpp uses them. All throw ImageError.
#pragma once

#include "data/image.hpp"

namespace troupe {

/// Returns the format by the first bytes. Refuses all but JPEG and PNG, and names other common
/// formats.
ImageFormat FormatOf(std::span<const std::uint8_t> bytes);

/// Uses libjpeg-turbo for JPEG, libpng for PNG.
Image DecodeJpeg(std::span<const std::uint8_t> bytes);
Image DecodePng(std::span<const std::uint8_t> bytes);
/// Read the header only. The pixels may be missing.
ImageFacts JpegFacts(std::span<const std::uint8_t> bytes);
ImageFacts PngFacts(std::span<const std::uint8_t> bytes);

}  // namespace troupe
