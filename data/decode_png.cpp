#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>

#include "data/image_format.hpp"

namespace troupe {
namespace {

/// A file in memory, and the reason why it could not be read.
struct Source {
  std::span<const std::uint8_t> left;
  std::array<char, 128> failure = {};
};

/// Reports an error of libpng, which is not exception-safe: jumps back to DecodeRows, whose frame
/// holds no object with a destructor.
[[noreturn]] void Jump(png_structp png, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->failure.data(), source->failure.size(), "%s", text);
  png_longjmp(png, 1);
}

void IgnoreWarning(png_structp /*png*/, png_const_charp /*text*/) {}

void ReadSource(png_structp png, png_bytep output, png_size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->left.size()) Jump(png, "the file is cut short");
  std::memcpy(output, source->left.data(), size);
  source->left = source->left.subspan(size);
}

/// libpng's handles.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit Reader(Source& source)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, Jump, IgnoreWarning)),
        info(png == nullptr ? nullptr : png_create_info_struct(png)) {
    if (info == nullptr) throw ImageError("not a usable png: out of memory");
    png_set_read_fn(png, &source, ReadSource);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Converts to 8-bit RGB like Pillow's convert("RGB"): drops alpha without composing, and the lower
/// byte of 16 bits. gAMA and the other colour chunks have no effect.
void RequestRgb(png_structp png) {
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
}

/// Reads up to the first pixel. Jumps if the header is malformed.
ImageFacts ReadHeader(Reader& reader) {
  png_read_info(reader.png, reader.info);
  const std::int64_t width = png_get_image_width(reader.png, reader.info);
  const std::int64_t height = png_get_image_height(reader.png, reader.info);
  if (width * height > kMaxImagePixels) Jump(reader.png, "more than 64 million pixels");
  return {ImageFormat::kPng, static_cast<int>(width), static_cast<int>(height)};
}

/// Fills `facts`. Returns false with a reason in the source of `reader`.
bool DecodeHeader(Reader& reader, ImageFacts& facts) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  facts = ReadHeader(reader);
  return true;
}

/// Fills `image`. Returns false with a reason in the source of `reader`.
bool DecodeRows(Reader& reader, Image& image, std::vector<png_bytep>& rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  const ImageFacts facts = ReadHeader(reader);
  RequestRgb(reader.png);
  png_read_update_info(reader.png, reader.info);
  const std::size_t row_bytes = static_cast<std::size_t>(facts.width) * 3;
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) Jump(reader.png, "unknown colours");
  image.width = facts.width;
  image.height = facts.height;
  image.pixels.resize(row_bytes * static_cast<std::size_t>(facts.height));
  for (int y = 0; y < facts.height; ++y) {
    rows.push_back(image.pixels.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  png_read_image(reader.png, rows.data());
  return true;
}

ImageError Unusable(const Source& source) {
  return ImageError(std::string("not a usable png: ") + source.failure.data());
}

}  // namespace

ImageFacts PngFacts(std::span<const std::uint8_t> bytes) {
  Source source{bytes};
  Reader reader(source);
  ImageFacts facts;
  if (!DecodeHeader(reader, facts)) throw Unusable(source);
  return facts;
}

Image DecodePng(std::span<const std::uint8_t> bytes) {
  Source source{bytes};
  Reader reader(source);
  Image image;
  std::vector<png_bytep> rows;  // declared here: a jump would skip its destructor in DecodeRows
  if (!DecodeRows(reader, image, rows)) throw Unusable(source);
  return image;
}

}  // namespace troupe
