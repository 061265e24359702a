#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>

#include "data/decode.hpp"

namespace troupe {
namespace {

/// A file in memory, and the reason why it could not be read.
struct Source {
  std::span<const std::uint8_t> left;
  std::array<char, 128> failure = {};
};

/// Reports an error of libpng, which is not exception-safe: jumps back to Decode, whose frame holds
/// no object with a destructor.
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

/// libpng's handles, and the rows that it fills.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;

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
void ReadHeader(Reader& reader, Image& image) {
  png_read_info(reader.png, reader.info);
  const std::int64_t width = png_get_image_width(reader.png, reader.info);
  const std::int64_t height = png_get_image_height(reader.png, reader.info);
  if (width * height > kMaxImagePixels) Jump(reader.png, "more than 64 million pixels");
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
}

/// Fills `image`. Returns false with a reason in the source of `reader`.
bool Decode(ImagePart part, Reader& reader, Image& image) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  ReadHeader(reader, image);
  if (part == ImagePart::kSize) return true;
  RequestRgb(reader.png);
  png_read_update_info(reader.png, reader.info);
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * 3;
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) Jump(reader.png, "unknown colours");
  image.pixels.resize(row_bytes * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    reader.rows.push_back(image.pixels.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  png_read_image(reader.png, reader.rows.data());
  return true;
}

}  // namespace

Image DecodePng(std::span<const std::uint8_t> bytes, ImagePart part) {
  Source source{bytes};
  Reader reader(source);
  Image image;
  if (Decode(part, reader, image)) return image;
  throw ImageError(std::string("not a usable png: ") + source.failure.data());
}

}  // namespace troupe
