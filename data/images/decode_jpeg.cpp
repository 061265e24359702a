#include <array>
#include <csetjmp>
#include <cstdio>
#include <jerror.h>
#include <jpeglib.h>
#include <string>
#include <string_view>

#include "data/images/decode.hpp"
#include "data/images/orientation.hpp"

namespace troupe {
namespace {

/// More scans than any encoder writes. Each costs a pass over all pixels, whatever its size.
constexpr int kMaxScans = 200;

/// Receives libjpeg's errors. libjpeg is not exception-safe, so an error jumps back to Decode, whose
/// frame holds no object with a destructor.
struct Failure {
  jpeg_error_mgr base;  // first, since libjpeg passes a pointer to it
  std::jmp_buf back;
  std::array<char, JMSG_LENGTH_MAX> text;
};

Failure& FailureOf(j_common_ptr codec) { return *reinterpret_cast<Failure*>(codec->err); }

[[noreturn]] void Jump(j_common_ptr codec) {
  codec->err->format_message(codec, FailureOf(codec).text.data());
  std::longjmp(FailureOf(codec).back, 1);
}

[[noreturn]] void JumpWith(j_common_ptr codec, const char* text) {
  std::snprintf(FailureOf(codec).text.data(), JMSG_LENGTH_MAX, "%s", text);
  std::longjmp(FailureOf(codec).back, 1);
}

/// libjpeg fills in the missing parts of a damaged file and reports a warning. An image with
/// invented parts must not be trained on.
void OnMessage(j_common_ptr codec, int level) {
  if (level >= 0) return;
  switch (codec->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
      Jump(codec);
    default:
      ++codec->err->num_warnings;
  }
}

void OnProgress(j_common_ptr codec) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(codec);
  if (decoder->input_scan_number > kMaxScans) JumpWith(codec, "more than 200 scans");
}

/// libjpeg's handle and the objects it points to. Destroying a handle that was never created is
/// legal.
struct Decoder {
  jpeg_decompress_struct codec = {};
  jpeg_progress_mgr progress = {};
  Failure failure = {};
  std::vector<std::uint8_t> inks;  ///< a row of CMYK

  Decoder() {
    codec.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = Jump;
    failure.base.emit_message = OnMessage;
    progress.progress_monitor = OnProgress;
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&codec); }
};

/// Holds EXIF and XMP.
constexpr int kMetadata = JPEG_APP0 + 1;

/// Reads up to the first pixel. Jumps if the header is malformed.
void ReadHeader(std::span<const std::uint8_t> bytes, ImagePart part, Decoder& whole, Image& image) {
  jpeg_decompress_struct& decoder = whole.codec;
  jpeg_create_decompress(&decoder);
  if (part != ImagePart::kSize) jpeg_save_markers(&decoder, kMetadata, 0xffff);
  decoder.progress = &whole.progress;
  jpeg_mem_src(&decoder, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&decoder, TRUE);
  const auto width = static_cast<std::int64_t>(decoder.image_width);
  const auto height = static_cast<std::int64_t>(decoder.image_height);
  if (width * height > kMaxImagePixels) {
    JumpWith(reinterpret_cast<j_common_ptr>(&decoder), "more than 64 million pixels");
  }
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
}

/// Like Pillow, joins the segments of EXIF and takes the last one of XMP.
int OrientationOf(const jpeg_decompress_struct& decoder) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  std::vector<std::uint8_t> exif;
  std::string_view xmp;
  for (const auto* marker = decoder.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->marker != kMetadata) continue;
    const std::string_view segment(reinterpret_cast<const char*>(marker->data),
                                   marker->data_length);
    if (segment.starts_with(kExif)) {
      exif.insert(exif.end(), marker->data + kExif.size(), marker->data + segment.size());
    } else if (segment.starts_with(kXmp)) {
      xmp = segment.substr(kXmp.size());
    }
  }
  return OrientationIn(exif, xmp);
}

/// Returns a * b / 255, rounded like Pillow's MULDIV255.
int MultiplyBytes(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/// Converts cyan, magenta, yellow and black to RGB. Files hold 255 - ink, Adobe's convention. Like
/// Pillow, assumes it for every file with four components, with or without Adobe's marker.
void InksToRgb(std::span<const std::uint8_t> inks, std::uint8_t* rgb) {
  for (std::size_t i = 0; i < inks.size(); i += 4) {
    const int light = inks[i + 3];
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const int ink = 255 - inks[i + channel];
      *rgb++ = static_cast<std::uint8_t>(light - MultiplyBytes(ink, light));
    }
  }
}

/// Fills `decoded`. Returns false with a reason in the failure.
bool Decode(std::span<const std::uint8_t> bytes, ImagePart part, Decoder& whole, Decoded& decoded) {
  if (setjmp(whole.failure.back) != 0) return false;
  Image& image = decoded.image;
  ReadHeader(bytes, part, whole, image);
  if (part == ImagePart::kSize) return true;
  jpeg_decompress_struct& decoder = whole.codec;
  decoded.orientation = OrientationOf(decoder);
  if (part == ImagePart::kOrientation) return true;
  const bool ink = decoder.num_components == 4;
  decoder.out_color_space = ink ? JCS_CMYK : JCS_RGB;  // libjpeg converts YCCK to CMYK
  jpeg_start_decompress(&decoder);
  const std::size_t row_bytes = std::size_t{decoder.output_width} * 3;
  image.pixels.resize(row_bytes * decoder.output_height);
  if (ink) whole.inks.resize(std::size_t{decoder.output_width} * 4);
  while (decoder.output_scanline < decoder.output_height) {
    std::uint8_t* const pixels = image.pixels.data() + decoder.output_scanline * row_bytes;
    JSAMPROW row = ink ? whole.inks.data() : pixels;
    jpeg_read_scanlines(&decoder, &row, 1);
    if (ink) InksToRgb(whole.inks, pixels);
  }
  jpeg_finish_decompress(&decoder);
  return true;
}

}  // namespace

Decoded DecodeJpeg(std::span<const std::uint8_t> bytes, ImagePart part) {
  Decoder decoder;
  Decoded decoded;
  if (Decode(bytes, part, decoder, decoded)) return decoded;
  throw ImageError(std::string("not a usable jpeg: ") + decoder.failure.text.data());
}

}  // namespace troupe
