#include <memory>
#include <string_view>
#include <webp/decode.h>
#include <webp/demux.h>

#include "data/images/decode.hpp"
#include "data/images/orientation.hpp"

namespace troupe {
namespace {

[[noreturn]] void FailWebp(const char* reason) {
  throw ImageError(std::string("not a usable webp: ") + reason);
}

void CheckPixels(std::int64_t width, std::int64_t height) {
  if (width * height > kMaxImagePixels) FailWebp("more than 64 million pixels");
}

Image ReadSizeOnly(std::span<const std::uint8_t> bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
    FailWebp("malformed header");
  }
  CheckPixels(features.width, features.height);
  return {features.width, features.height, {}};
}

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;

std::string_view ChunkOf(const WebPDemuxer* file, const char* name) {
  WebPChunkIterator chunk;
  if (WebPDemuxGetChunk(file, name, 1, &chunk) == 0) return {};
  const std::string_view bytes(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
  WebPDemuxReleaseChunkIterator(&chunk);  // the bytes are those of the file
  return bytes;
}

int OrientationOf(const WebPDemuxer* file) {
  const std::string_view exif = ChunkOf(file, "EXIF");
  return OrientationIn({reinterpret_cast<const std::uint8_t*>(exif.data()), exif.size()},
                       ChunkOf(file, "XMP "));
}

/// Decodes a frame to its place on the canvas, without its alpha.
void DrawFrame(const WebPIterator& frame, Image& canvas) {
  const bool inside = frame.x_offset >= 0 && frame.y_offset >= 0 &&
                      frame.width <= canvas.width - frame.x_offset &&
                      frame.height <= canvas.height - frame.y_offset;
  WebPDecoderConfig config;
  if (!inside || WebPInitDecoderConfig(&config) == 0) FailWebp("a frame beyond its canvas");
  const std::size_t row_bytes = static_cast<std::size_t>(canvas.width) * 3;
  const std::size_t start = static_cast<std::size_t>(frame.y_offset) * row_bytes +
                            static_cast<std::size_t>(frame.x_offset) * 3;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = canvas.pixels.data() + start;
  config.output.u.RGBA.stride = static_cast<int>(row_bytes);
  config.output.u.RGBA.size = canvas.pixels.size() - start;
  const VP8StatusCode status = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  const bool whole = config.output.width == frame.width && config.output.height == frame.height;
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK || !whole) FailWebp("damaged pixels");
}

}  // namespace

Decoded DecodeWebp(std::span<const std::uint8_t> bytes, ImagePart part) {
  if (part == ImagePart::kSize) return {ReadSizeOnly(bytes)};
  const WebPData data = {bytes.data(), bytes.size()};
  const Demuxer file(WebPDemux(&data), WebPDemuxDelete);
  if (file == nullptr) FailWebp("the file is cut short or malformed");
  const std::int64_t width = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_WIDTH);
  const std::int64_t height = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_HEIGHT);
  CheckPixels(width, height);
  Decoded decoded = {{static_cast<int>(width), static_cast<int>(height), {}},
                     OrientationOf(file.get())};
  if (part == ImagePart::kOrientation) return decoded;
  // Where an animation's first frame leaves the canvas free, it is black.
  decoded.image.pixels.resize(static_cast<std::size_t>(width * height * 3));
  WebPIterator frame;
  if (WebPDemuxGetFrame(file.get(), 1, &frame) == 0) FailWebp("no frame");
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> release(
      &frame, WebPDemuxReleaseIterator);
  DrawFrame(frame, decoded.image);
  return decoded;
}

}  // namespace troupe
