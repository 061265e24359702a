#include "data/image_format.hpp"

#include <algorithm>
#include <array>
#include <string_view>

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

bool Has(std::span<const std::uint8_t> bytes, const Magic& magic) {
  return bytes.size() >= magic.at + magic.bytes.size() &&
         std::equal(magic.bytes.begin(), magic.bytes.end(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(magic.at),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

}  // namespace

ImageFormat FormatOf(std::span<const std::uint8_t> bytes) {
  if (Has(bytes, kJpeg)) return ImageFormat::kJpeg;
  if (Has(bytes, kPng)) return ImageFormat::kPng;
  if (bytes.empty()) throw ImageError("expected a jpeg or png, got an empty file");
  for (const Magic& magic : kForeign) {
    if (!Has(bytes, magic)) continue;
    throw ImageError("expected a jpeg or png, got a file of another format (" +
                     std::string(magic.name) + "): convert it and correct the row");
  }
  throw ImageError("expected a jpeg or png, got a file that begins like neither");
}

}  // namespace troupe
