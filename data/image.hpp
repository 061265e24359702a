// Decodes JPEG and PNG files to pixels, and preprocesses pixels for encoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kinds/field.hpp"

namespace troupe {

/// An image that cannot be used; the text is one line.
struct ImageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::int64_t kMaxImageBytes = 64LL << 20;   ///< of a file
inline constexpr std::int64_t kMaxImagePixels = 64'000'000;  ///< decoded

/// 8-bit sRGB.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]
  friend bool operator==(const Image&, const Image&) = default;
};

enum class ImageFormat : std::uint8_t { kJpeg, kPng };
inline constexpr int kNumImageFormats = 2;

/// Facts from a file's header.
struct ImageFacts {
  ImageFormat format = ImageFormat::kJpeg;
  int width = 0;
  int height = 0;
};

/// Decodes a JPEG or PNG, distinguished by their first bytes, to the pixels of Pillow's
/// convert("RGB"): drops alpha, converts CMYK, and ignores gamma, colour profiles and EXIF
/// orientation. Throws ImageError, also for a truncated file.
Image DecodeImage(std::span<const std::uint8_t> bytes);

/// Like `DecodeImage`, for a file; errors begin with its name.
Image ReadImage(const std::string& file);

/// Checks a file's type, size, first bytes and header; with `decode` also that the whole file
/// decodes. Errors begin with the file's name.
ImageFacts CheckImage(const std::string& file, bool decode);

/// CLIP's preprocessing: bicubic resize of the shorter side to `size`, centre crop, division by
/// 255, normalisation.
///   output   [3, size, size] float32
void ToPixels(const Image& image, std::int64_t size, const ImageField::Normalisation& normalisation,
              std::span<float> output);

}  // namespace troupe
