#include "data/image.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <png.h>
#include <system_error>

#include "data/image_format.hpp"
#include "data/resize.hpp"

namespace troupe {
namespace {

/// libpng's handle; png_image_free is idempotent.
struct PngFile {
  png_image image = {};
  PngFile() { image.version = PNG_IMAGE_VERSION; }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
  ~PngFile() { png_image_free(&image); }
};

/// A longer header is read with the whole file.
constexpr std::uintmax_t kHeaderBytes = 4096;

/// Returns the size of `file`. Throws ImageError unless it is a regular file of a usable size,
/// since opening a pipe or a device could block forever.
std::uintmax_t SizeOf(const std::string& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (status.type() == std::filesystem::file_type::none) {
    throw ImageError("cannot be read: " + failure.message());
  }
  if (!std::filesystem::exists(status)) throw ImageError("no such file");
  if (!std::filesystem::is_regular_file(status)) throw ImageError("expected a regular file");
  const std::uintmax_t size = std::filesystem::file_size(file, failure);
  if (failure) throw ImageError(failure.message());
  if (size > static_cast<std::uintmax_t>(kMaxImageBytes)) {
    throw ImageError("expected at most 64 MiB, got " + std::to_string(size) + " bytes");
  }
  return size;
}

std::vector<std::uint8_t> ReadBytes(const std::string& file, std::uintmax_t size) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw ImageError(std::string("could not be opened: ") + std::strerror(errno));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (stream.gcount() != static_cast<std::streamsize>(size)) {
    throw ImageError("expected " + std::to_string(size) + " bytes, could read " +
                     std::to_string(stream.gcount()));
  }
  return bytes;
}

ImageFacts FactsOf(std::span<const std::uint8_t> bytes) {
  return FormatOf(bytes) == ImageFormat::kJpeg ? JpegFacts(bytes) : PngFacts(bytes);
}

/// Reads the first bytes only, unless long metadata precede the size.
ImageFacts ReadFacts(const std::string& file, std::uintmax_t size) {
  if (size > kHeaderBytes) {
    const std::vector<std::uint8_t> start = ReadBytes(file, kHeaderBytes);
    static_cast<void>(FormatOf(start));  // an error of the format is final
    try {
      return FactsOf(start);
    } catch (const ImageError&) {
    }
  }
  return FactsOf(ReadBytes(file, size));
}

/// Prefixes errors of `action` with the file's name.
template <class Action>
auto WithName(const std::string& file, Action action) {
  try {
    return action();
  } catch (const ImageError& error) {
    throw ImageError(file + ": " + error.what());
  }
}

}  // namespace

Image DecodeImage(std::span<const std::uint8_t> bytes) {
  return FormatOf(bytes) == ImageFormat::kJpeg ? DecodeJpeg(bytes) : DecodePng(bytes);
}

Image ReadImage(const std::string& file) {
  return WithName(file, [&] { return DecodeImage(ReadBytes(file, SizeOf(file))); });
}

ImageFacts CheckImage(const std::string& file, bool decode) {
  return WithName(file, [&] {
    const std::uintmax_t size = SizeOf(file);
    if (!decode) return ReadFacts(file, size);
    const std::vector<std::uint8_t> bytes = ReadBytes(file, size);
    const Image image = DecodeImage(bytes);
    return ImageFacts{FormatOf(bytes), image.width, image.height};
  });
}

void WritePng(const std::string& file, const Image& image) {
  const auto num_bytes =
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3;
  if (num_bytes == 0 || image.pixels.size() != num_bytes) {
    throw ImageError(file + ": expected an image of " + std::to_string(image.width) + " x " +
                     std::to_string(image.height) + " x 3 bytes, got " +
                     std::to_string(image.pixels.size()));
  }
  PngFile png;
  png.image.width = static_cast<png_uint_32>(image.width);
  png.image.height = static_cast<png_uint_32>(image.height);
  png.image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&png.image, file.c_str(), 0, image.pixels.data(), 0, nullptr) == 0) {
    throw ImageError(file + ": could not be written: " + png.image.message);
  }
}

void ToPixels(const Image& image, std::int64_t size, const ImageField::Normalisation& normalisation,
              std::span<float> output) {
  const std::vector<std::uint8_t> cropped = ResizeAndCrop(image, static_cast<int>(size));
  const auto num_pixels = static_cast<std::size_t>(size * size);
  if (output.size() != 3 * num_pixels) {
    throw std::invalid_argument("image: expected room for " + std::to_string(3 * num_pixels) +
                                " numbers, got " + std::to_string(output.size()));
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t i = 0; i < num_pixels; ++i) {
      const double value = cropped[3 * i + channel] / 255.0;
      output[channel * num_pixels + i] = static_cast<float>((value - normalisation.mean[channel]) /
                                                            normalisation.deviation[channel]);
    }
  }
}

}  // namespace troupe
