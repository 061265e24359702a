#include "data/image.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "data/decode.hpp"
#include "data/resize.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

using namespace std::string_view_literals;

/// The bytes at offset `at` in every file of a format.
struct Magic {
  std::string_view name;
  std::size_t at = 0;
  std::string_view bytes;
};

constexpr Magic kJpeg = {"jpeg", 0, "\xff\xd8\xff"sv};
constexpr Magic kPng = {"png", 0, "\x89PNG\r\n\x1a\n"sv};
constexpr std::array<Magic, 12> kForeign = {{
    {"webp", 8, "WEBP"sv},
    {"gif", 0, "GIF8"sv},
    {"bmp", 0, "BM"sv},
    {"tiff", 0, "II*\0"sv},
    {"tiff", 0, "MM\0*"sv},
    {"avif or heif", 4, "ftyp"sv},
    {"jpeg 2000", 0, "\0\0\0\x0cjP  "sv},
    {"jpeg xl", 0, "\xff\x0a"sv},
    {"jpeg xl", 0, "\0\0\0\x0cJXL "sv},
    {"svg", 0, "<svg"sv},
    {"pdf", 0, "%PDF"sv},
    {"html page", 0, "<!DOCTYPE"sv},
}};

/// Returns the format by the first bytes. Refuses all but JPEG and PNG, and names other common
/// formats.
ImageFormat FormatOf(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) throw ImageError("expected a jpeg or png, got an empty file");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto has = [&](const Magic& magic) {
    return text.size() > magic.at && text.substr(magic.at).starts_with(magic.bytes);
  };
  if (has(kJpeg)) return ImageFormat::kJpeg;
  if (has(kPng)) return ImageFormat::kPng;
  for (const Magic& magic : kForeign) {
    if (!has(magic)) continue;
    throw ImageError("expected a jpeg or png, got a file of another format (" +
                     std::string(magic.name) + "): convert it and correct the row");
  }
  throw ImageError("expected a jpeg or png, got a file that begins like neither");
}

/// A longer header is read with the whole file.
constexpr std::uintmax_t kHeaderBytes = 4096;

/// Returns the size of `file`. Throws ImageError unless it is a regular file of a usable size.
std::uintmax_t SizeOf(const std::string& file) {
  if (const std::string reason = WhyNotOpened(file); !reason.empty()) throw ImageError(reason);
  std::error_code failure;
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

Image Decode(std::span<const std::uint8_t> bytes, ImagePart part) {
  return FormatOf(bytes) == ImageFormat::kJpeg ? DecodeJpeg(bytes, part) : DecodePng(bytes, part);
}

ImageFacts FactsOf(std::span<const std::uint8_t> bytes, ImagePart decoded) {
  const Image image = Decode(bytes, decoded);
  return {FormatOf(bytes), image.width, image.height};
}

/// Reads the first bytes only, unless long metadata precede the size.
ImageFacts ReadFacts(const std::string& file, std::uintmax_t size) {
  if (size > kHeaderBytes) {
    const std::vector<std::uint8_t> start = ReadBytes(file, kHeaderBytes);
    static_cast<void>(FormatOf(start));  // an error of the format is final
    try {
      return FactsOf(start, ImagePart::kSize);
    } catch (const ImageError&) {
    }
  }
  return FactsOf(ReadBytes(file, size), ImagePart::kSize);
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

Image DecodeImage(std::span<const std::uint8_t> bytes) { return Decode(bytes, ImagePart::kPixels); }

Image ReadImage(const std::string& file) {
  return WithName(file, [&] { return DecodeImage(ReadBytes(file, SizeOf(file))); });
}

ImageFacts CheckImage(const std::string& file, bool decode) {
  return WithName(file, [&] {
    const std::uintmax_t size = SizeOf(file);
    return decode ? FactsOf(ReadBytes(file, size), ImagePart::kPixels) : ReadFacts(file, size);
  });
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
