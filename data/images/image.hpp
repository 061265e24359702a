// Decodes image files to pixels, and preprocesses pixels for encoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/images/tiles.hpp"
#include "data/rows/item_file.hpp"
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

enum class ImageFormat : std::uint8_t { kJpeg, kPng, kWebp, kGif };
inline constexpr int kNumImageFormats = 4;
/// "jpeg".
std::string_view ToString(ImageFormat format);

/// Facts from a file's header.
struct ImageFacts {
  ImageFormat format = ImageFormat::kJpeg;
  int width = 0;  ///< as stored, before the file is turned by its EXIF orientation
  int height = 0;
};

/// Decodes an image, whose first bytes show its format, to the pixels of
/// transformers.image_utils.load_image: the first frame, turned by its EXIF orientation, then
/// Pillow's convert("RGB"), which drops alpha and converts CMYK. Ignores gamma and colour profiles.
/// 16-bit grey keeps its upper bytes. Throws ImageError, also for a truncated file.
Image DecodeImage(std::span<const std::uint8_t> bytes);

/// Like `DecodeImage`, for a file; errors begin with its name.
Image ReadImage(const ItemFile& file);

/// Checks a file's type, size, first bytes and header; with `decode` also that the whole file
/// decodes. Errors begin with the file's name.
ImageFacts CheckImage(const ItemFile& file, bool decode);

/// Returns the size of `DecodeImage(bytes)` without decoding pixels. Throws ImageError.
PixelSize UprightSizeOf(std::span<const std::uint8_t> bytes);

/// Like `UprightSizeOf`, for a file; errors begin with its name.
PixelSize ReadUprightSize(const ItemFile& file);

/// Returns the grid over which an image of that size lies. The field's images are cut into tiles.
TileGrid GridOf(const ImageField& field, PixelSize image);

/// Fits the image into the field's squares, in 8 bits: [squares, size, size, 3].
std::vector<std::uint8_t> ToSquares(const Image& image, const ImageField& field);

/// Divides by 255 and normalises, in float32 as the image processors of transformers do.
///   output   [squares, 3, size, size] float32
void Normalise(std::span<const std::uint8_t> squares, const ImageField& field,
               std::span<float> output);

/// ToSquares, then Normalise.
void ToPixels(const Image& image, const ImageField& field, std::span<float> output);

}  // namespace troupe
