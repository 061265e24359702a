// Writes images for tests of what reads them.
#pragma once

#include <png.h>
#include <stdexcept>
#include <string>

#include "data/images/image.hpp"

namespace troupe {

inline void WritePng(const std::string& file, const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&png, file.c_str(), 0, image.pixels.data(), 0, nullptr) == 0) {
    throw std::runtime_error(file + ": " + png.message);
  }
}

}  // namespace troupe
