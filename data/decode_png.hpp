// PNG by libpng; only image.cpp uses it.
#pragma once

#include "data/image.hpp"

namespace troupe {

/// Throws ImageError.
Image DecodePng(std::span<const std::uint8_t> bytes);

/// Reads the header only; pixels may be missing. Throws ImageError.
ImageFacts PngFacts(std::span<const std::uint8_t> bytes);

}  // namespace troupe
