#include "data/image.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <png.h>
#include <system_error>

#include "data/decode_jpeg.hpp"
#include "data/resize.hpp"

namespace troupe {
namespace {

constexpr std::array<std::uint8_t, 3> kJpegMagic = {0xff, 0xd8, 0xff};
constexpr std::array<std::uint8_t, 8> kPngMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

// Of OpenAI's CLIP, by channel.
constexpr std::array<double, 3> kClipMean = {0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> kClipDeviation = {0.26862954, 0.26130258, 0.27577711};

template <std::size_t N>
bool StartsWith(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, N>& magic) {
  return bytes.size() >= N && std::equal(magic.begin(), magic.end(), bytes.begin());
}

/// libpng's handle; png_image_free is idempotent.
struct PngFile {
  png_image image = {};
  PngFile() { image.version = PNG_IMAGE_VERSION; }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
  ~PngFile() { png_image_free(&image); }
};

Image DecodePng(std::span<const std::uint8_t> bytes) {
  PngFile png;
  const auto fail = [&] {
    throw ImageError(std::string("not a usable png: ") + png.image.message);
  };
  if (png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) == 0) fail();
  const std::int64_t num_pixels = std::int64_t{png.image.width} * png.image.height;
  if (num_pixels > kMaxImagePixels) {
    throw ImageError("not a usable png: more than 64 million pixels");
  }
  png.image.format = PNG_FORMAT_RGB;
  Image image{static_cast<int>(png.image.width), static_cast<int>(png.image.height), {}};
  image.pixels.resize(static_cast<std::size_t>(num_pixels) * 3);
  const png_color white = {255, 255, 255};
  if (png_image_finish_read(&png.image, &white, image.pixels.data(), 0, nullptr) == 0) fail();
  return image;
}

std::vector<std::uint8_t> ReadBytes(const std::string& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (!std::filesystem::exists(status)) throw ImageError("no such file");
  // Opening a pipe or a device could wait for ever.
  if (!std::filesystem::is_regular_file(status)) throw ImageError("expected a regular file");
  const std::uintmax_t size = std::filesystem::file_size(file, failure);
  if (failure) throw ImageError(failure.message());
  if (size > static_cast<std::uintmax_t>(kMaxImageBytes)) {
    throw ImageError("expected at most 64 MiB, got " + std::to_string(size) + " bytes");
  }
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

}  // namespace

Image DecodeImage(std::span<const std::uint8_t> bytes) {
  if (StartsWith(bytes, kJpegMagic)) return DecodeJpeg(bytes);
  if (StartsWith(bytes, kPngMagic)) return DecodePng(bytes);
  throw ImageError("expected a jpeg or png, the first bytes are neither's");
}

Image ReadImage(const std::string& file) {
  try {
    return DecodeImage(ReadBytes(file));
  } catch (const ImageError& error) {
    throw ImageError(file + ": " + error.what());
  }
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

void ToClipPixels(const Image& image, std::int64_t size, std::span<float> output) {
  const std::vector<std::uint8_t> cropped = ResizeAndCrop(image, static_cast<int>(size));
  const auto num_pixels = static_cast<std::size_t>(size * size);
  if (output.size() != 3 * num_pixels) {
    throw std::invalid_argument("image: expected room for " + std::to_string(3 * num_pixels) +
                                " numbers, got " + std::to_string(output.size()));
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t i = 0; i < num_pixels; ++i) {
      const double value = cropped[3 * i + channel] / 255.0;
      output[channel * num_pixels + i] =
          static_cast<float>((value - kClipMean[channel]) / kClipDeviation[channel]);
    }
  }
}

}  // namespace troupe
