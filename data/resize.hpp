// Bicubic resizing; the only place that knows stb_image_resize.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image.hpp"

namespace troupe {

/// The image resized so that its shorter side is `size`, and the centre of that: [size, size, 3].
/// Catmull-Rom with antialiasing, on the stored (not linearised) values, as PIL's BICUBIC is.
/// Throws ImageError: an image without pixels, no memory.
std::vector<std::uint8_t> ResizeAndCrop(const Image& image, int size);

}  // namespace troupe
