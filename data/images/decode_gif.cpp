#include <algorithm>
#include <array>
#include <cstring>
#include <gif_lib.h>
#include <memory>
#include <optional>

#include "data/images/decode.hpp"

namespace troupe {
namespace {

[[noreturn]] void FailGif(const std::string& reason) {
  throw ImageError("not a usable gif: " + reason);
}

/// giflib's handle of a file in memory. Owns the handle.
class GifReader {
 public:
  explicit GifReader(std::span<const std::uint8_t> bytes) : left_(bytes) {
    int error = 0;
    gif_ = DGifOpen(this, ReadBytes, &error);
    if (gif_ == nullptr) FailGif(TextOf(error));
  }
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;
  ~GifReader() { DGifCloseFile(gif_, nullptr); }

  GifFileType& get() { return *gif_; }
  void Expect(int result) const {
    if (result != GIF_OK) FailGif(TextOf(gif_->Error));
  }

 private:
  static std::string TextOf(int error) {
    if (error == D_GIF_ERR_READ_FAILED || error == D_GIF_ERR_EOF_TOO_SOON) {
      return "the file is cut short";
    }
    const char* const text = GifErrorString(error);
    return text == nullptr ? "unknown error" : text;
  }
  static int ReadBytes(GifFileType* gif, GifByteType* output, int size) {
    auto& left = static_cast<GifReader*>(gif->UserData)->left_;
    const std::size_t num_bytes = std::min(left.size(), static_cast<std::size_t>(size));
    if (num_bytes > 0) std::memcpy(output, left.data(), num_bytes);
    left = left.subspan(num_bytes);
    return static_cast<int>(num_bytes);
  }

  std::span<const std::uint8_t> left_;
  GifFileType* gif_ = nullptr;
};

/// Reads an extension; the transparent index of a graphics control goes to `transparent`.
void ReadExtension(GifReader& reader, std::optional<GifByteType>& transparent) {
  int code = 0;
  GifByteType* block = nullptr;  // begins with its length
  reader.Expect(DGifGetExtension(&reader.get(), &code, &block));
  const bool control = code == GRAPHICS_EXT_FUNC_CODE && block != nullptr && block[0] >= 4;
  if (control && (block[1] & 1) != 0) transparent = block[4];
  while (block != nullptr) reader.Expect(DGifGetExtensionNext(&reader.get(), &block));
}

/// Reads up to the first frame's pixels. Returns the transparent index.
std::optional<GifByteType> SeekFirstFrame(GifReader& reader) {
  std::optional<GifByteType> transparent;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    reader.Expect(DGifGetRecordType(&reader.get(), &type));
    if (type == TERMINATE_RECORD_TYPE) FailGif("no frame");
    if (type == EXTENSION_RECORD_TYPE) ReadExtension(reader, transparent);
    if (type != IMAGE_DESC_RECORD_TYPE) continue;
    reader.Expect(DGifGetImageDesc(&reader.get()));
    return transparent;
  }
}

using Rgb = std::array<std::uint8_t, 3>;

/// Returns the colours of all indices. As in Pillow, indices beyond the file's map are black, and
/// shades of grey if there is no map, or one of these shades.
std::array<Rgb, 256> ColoursOf(const GifFileType& gif) {
  std::array<Rgb, 256> greys;
  for (std::size_t i = 0; i < greys.size(); ++i) greys[i].fill(static_cast<std::uint8_t>(i));
  const auto* const map = gif.Image.ColorMap != nullptr ? gif.Image.ColorMap : gif.SColorMap;
  if (map == nullptr) return greys;
  std::array<Rgb, 256> colours = {};
  const auto size = std::min(colours.size(), static_cast<std::size_t>(map->ColorCount));
  for (std::size_t i = 0; i < size; ++i) {
    const GifColorType& colour = map->Colors[i];
    colours[i] = {colour.Red, colour.Green, colour.Blue};
  }
  const auto mapped = colours.begin() + static_cast<std::ptrdiff_t>(size);
  return std::equal(colours.begin(), mapped, greys.begin()) ? greys : colours;
}

/// Returns the rows of a frame in the order in which they are stored.
std::vector<int> RowsOf(const GifImageDesc& frame) {
  struct Pass {
    int first;
    int step;
  };
  static constexpr auto kInterlaced = std::to_array<Pass>({{0, 8}, {4, 8}, {2, 4}, {1, 2}});
  static constexpr auto kPlain = std::to_array<Pass>({{0, 1}});
  const std::span<const Pass> passes =
      frame.Interlace ? std::span<const Pass>(kInterlaced) : std::span<const Pass>(kPlain);
  std::vector<int> rows;
  for (const Pass& pass : passes) {
    for (int y = pass.first; y < frame.Height; y += pass.step) rows.push_back(y);
  }
  return rows;
}

/// Decodes the first frame to its place in the image.
void DrawFrame(GifReader& reader, const std::array<Rgb, 256>& colours, Image& image) {
  const GifImageDesc& frame = reader.get().Image;
  std::vector<GifPixelType> line(static_cast<std::size_t>(frame.Width));
  for (const int y : RowsOf(frame)) {
    reader.Expect(DGifGetLine(&reader.get(), line.data(), frame.Width));
    const std::int64_t start = std::int64_t{frame.Top + y} * image.width + frame.Left;
    std::uint8_t* output = image.pixels.data() + start * 3;
    for (const GifPixelType index : line) output = std::ranges::copy(colours[index], output).out;
  }
}

}  // namespace

Decoded DecodeGif(std::span<const std::uint8_t> bytes, ImagePart part) {
  GifReader reader(bytes);
  const auto transparent = SeekFirstFrame(reader);
  const GifFileType& gif = reader.get();
  const GifImageDesc& frame = gif.Image;
  if (frame.Width < 1 || frame.Height < 1 || frame.Left < 0 || frame.Top < 0) {
    FailGif("a frame without pixels");
  }
  // A frame beyond the screen extends it.
  Decoded decoded;
  Image& image = decoded.image;
  image.width = std::max(gif.SWidth, frame.Left + frame.Width);
  image.height = std::max(gif.SHeight, frame.Top + frame.Height);
  if (std::int64_t{image.width} * image.height > kMaxImagePixels) {
    FailGif("more than 64 million pixels");
  }
  if (part != ImagePart::kPixels) return decoded;  // it has no orientation
  const auto colours = ColoursOf(gif);
  const Rgb free = colours[transparent.value_or(0)];
  const std::size_t num_pixels =
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  image.pixels.resize(num_pixels * 3);
  const bool covered = frame.Width == image.width && frame.Height == image.height;
  for (std::size_t i = 0; !covered && i < num_pixels; ++i) {
    std::ranges::copy(free, image.pixels.data() + 3 * i);
  }
  DrawFrame(reader, colours, image);
  return decoded;
}

}  // namespace troupe
