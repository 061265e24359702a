// JPEG and PNG files to pixels, and pixels to what a CLIP-style encoder takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// An image that cannot be used; one line.
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

/// The facts that a file's header holds.
struct ImageFacts {
  ImageFormat format = ImageFormat::kJpeg;
  int width = 0;
  int height = 0;
};

/// Decodes a JPEG or PNG, which their first bytes distinguish, to the pixels of Pillow's
/// convert("RGB"): alpha is dropped, CMYK is converted, gamma, colour profiles and EXIF orientation
/// have no effect. Throws ImageError, also for a file that is cut short.
Image DecodeImage(std::span<const std::uint8_t> bytes);

/// Like `DecodeImage`, for a file; errors begin with its name.
Image ReadImage(const std::string& file);

/// Checks a file's type, size, first bytes and header; with `decode`, that all of it decodes.
/// Errors begin with the file's name.
ImageFacts CheckImage(const std::string& file, bool decode);

/// Throws ImageError: an image without pixels, or a file that cannot be written.
void WritePng(const std::string& file, const Image& image);

/// CLIP's preprocessing: bicubic resize of the shorter side to `size`, centre crop, division by
/// 255, CLIP's mean and standard deviation.
///   output   [3, size, size] float32
void ToClipPixels(const Image& image, std::int64_t size, std::span<float> output);

}  // namespace troupe
