#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>
#include <string_view>

#include "data/images/decode.hpp"
#include "data/images/orientation.hpp"

namespace troupe {
namespace {

/// Texts and the like that are kept; libpng drops more. Each may grow to 8 MB when it is unpacked.
constexpr png_uint_32 kMaxChunks = 32;

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
    png_set_chunk_cache_max(png, kMaxChunks);
    // The number of pixels is limited, not a side.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
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

/// Returns the bytes of "Raw profile type exif" as ImageMagick writes it: three lines, then
/// hexadecimal digits. Empty for other texts.
std::vector<std::uint8_t> RawProfile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<std::uint8_t> bytes;
  std::size_t num_digits = 0;
  for (const char letter : text) {
    if (letter == '\n') continue;
    const std::size_t digit = kDigits.find(letter);
    if (digit == kDigits.npos) return {};
    if (num_digits++ % 2 == 0) bytes.push_back(0);
    bytes.back() = static_cast<std::uint8_t>(bytes.back() << 4 | digit);
  }
  return bytes;
}

/// Needs the chunks after the pixels, too.
int OrientationOf(const Reader& reader) {
  std::vector<std::uint8_t> raw;
  std::string_view xmp;
  png_textp texts = nullptr;
  int num_texts = 0;
  png_get_text(reader.png, reader.info, &texts, &num_texts);
  for (int i = 0; i < num_texts; ++i) {
    const png_text& text = texts[i];
    const std::string_view value(text.text,
                                 text.compression > 0 ? text.itxt_length : text.text_length);
    if (text.key == std::string_view("XML:com.adobe.xmp")) xmp = value;
    if (text.key == std::string_view("Raw profile type exif")) raw = RawProfile(value);
  }
  png_uint_32 num_bytes = 0;
  png_bytep exif = nullptr;
  const bool has = png_get_eXIf_1(reader.png, reader.info, &num_bytes, &exif) != 0;
  return has ? OrientationIn({exif, num_bytes}, xmp) : OrientationIn(raw, xmp);
}

/// Returns the file with the metadata after its pixels moved before one empty IDAT, so that libpng reads
/// them without pixels. A chunk is its size, its name of four letters, as many bytes, and a checksum.
std::vector<std::uint8_t> WithPixelsLast(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kAround = 12;  // bytes of a chunk besides its own
  const auto signature = bytes.first(std::min(kSignature, bytes.size()));
  std::vector<std::uint8_t> output(signature.begin(), signature.end());
  bytes = bytes.subspan(output.size());
  const auto take = [&](std::size_t size) {
    if (size > bytes.size()) throw ImageError("not a usable png: the file is cut short");
    return bytes.first(size);
  };
  bool after_pixels = false;
  for (bool ends = false; !ends;) {
    const auto start = take(kAround);
    const std::uint32_t size = std::uint32_t{start[0]} << 24 | std::uint32_t{start[1]} << 16 |
                               std::uint32_t{start[2]} << 8 | start[3];
    const std::string_view name(reinterpret_cast<const char*>(start.data()) + 4, 4);
    ends = name == "IEND";
    const auto chunk = take(kAround + size);
    after_pixels = after_pixels || name == "IDAT";
    const bool metadata = name == "eXIf" || name == "tEXt" || name == "zTXt" || name == "iTXt";
    if (metadata || (!after_pixels && !ends)) {
      output.insert(output.end(), chunk.begin(), chunk.end());
    }
    bytes = bytes.subspan(chunk.size());
  }
  const std::string_view no_pixels("\0\0\0\0IDAT", 8);
  output.insert(output.end(), no_pixels.begin(), no_pixels.end());
  return output;
}

/// Fills `decoded`. Returns false with a reason in the source of `reader`.
bool Decode(ImagePart part, Reader& reader, Decoded& decoded) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  Image& image = decoded.image;
  ReadHeader(reader, image);
  if (part == ImagePart::kSize) return true;
  if (part == ImagePart::kOrientation) {
    decoded.orientation = OrientationOf(reader);
    return true;
  }
  RequestRgb(reader.png);
  png_read_update_info(reader.png, reader.info);
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * 3;
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) Jump(reader.png, "unknown colours");
  image.pixels.resize(row_bytes * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    reader.rows.push_back(image.pixels.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  png_read_image(reader.png, reader.rows.data());
  png_read_end(reader.png, reader.info);
  decoded.orientation = OrientationOf(reader);
  return true;
}

}  // namespace

Decoded DecodePng(std::span<const std::uint8_t> bytes, ImagePart part) {
  std::vector<std::uint8_t> reordered;
  if (part == ImagePart::kOrientation) reordered = WithPixelsLast(bytes);
  Source source{reordered.empty() ? bytes : reordered};
  Reader reader(source);
  Decoded decoded;
  if (Decode(part, reader, decoded)) return decoded;
  throw ImageError(std::string("not a usable png: ") + source.failure.data());
}

}  // namespace troupe
