// The formats of images; only image.cpp uses them. All throw ImageError.
#pragma once

#include "data/image.hpp"

namespace troupe {

/// By the first bytes. Refuses anything but a JPEG or PNG, and names other formats that people have.
ImageFormat FormatOf(std::span<const std::uint8_t> bytes);

/// JPEG by libjpeg-turbo, PNG by libpng.
Image DecodeJpeg(std::span<const std::uint8_t> bytes);
Image DecodePng(std::span<const std::uint8_t> bytes);
/// Read the header only; pixels may be missing.
ImageFacts JpegFacts(std::span<const std::uint8_t> bytes);
ImageFacts PngFacts(std::span<const std::uint8_t> bytes);

}  // namespace troupe
