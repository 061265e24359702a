// Image formats by their first bytes.
#pragma once

#include "data/image.hpp"

namespace troupe {

/// Throws ImageError for anything but a JPEG or PNG; it names other formats that people have.
ImageFormat FormatOf(std::span<const std::uint8_t> bytes);

}  // namespace troupe
