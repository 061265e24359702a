#include "data/images/image.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/images/decode.hpp"
#include "data/images/orientation.hpp"
#include "data/images/resize.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

using namespace std::string_view_literals;

/// The bytes at offset `at` in every file of a format.
struct Magic {
  std::string_view name;
  std::size_t at = 0;
  std::string_view bytes;
};

struct Format : Magic {
  Decoded (*decode)(std::span<const std::uint8_t> bytes, ImagePart part);
};
/// In the order of ImageFormat.
constexpr std::array<Format, kNumImageFormats> kFormats = {{
    {{"jpeg", 0, "\xff\xd8\xff"sv}, DecodeJpeg},
    {{"png", 0, "\x89PNG\r\n\x1a\n"sv}, DecodePng},
    {{"webp", 8, "WEBP"sv}, DecodeWebp},
    {{"gif", 0, "GIF8"sv}, DecodeGif},
}};
constexpr std::array<Magic, 10> kForeign = {{
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

/// Returns the format by the first bytes. Refuses files of no format, and names other common ones.
ImageFormat FormatOf(std::span<const std::uint8_t> bytes) {
  const auto refuse = [](const std::string& got) {
    return ImageError("expected a " + ListedWithOr(kFormats, std::mem_fn(&Format::name)) +
                      ", got " + got);
  };
  if (bytes.empty()) throw refuse("an empty file");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto has = [&](const Magic& magic) {
    return text.size() > magic.at && text.substr(magic.at).starts_with(magic.bytes);
  };
  const auto* const known = std::ranges::find_if(kFormats, has);
  if (known != kFormats.end()) return static_cast<ImageFormat>(known - kFormats.begin());
  for (const Magic& magic : kForeign) {
    if (!has(magic)) continue;
    throw refuse("a file of another format (" + std::string(magic.name) +
                 "): convert it and correct the row");
  }
  throw refuse("a file that begins like none of them");
}

const Format& At(ImageFormat format) { return kFormats[static_cast<std::size_t>(format)]; }

/// A longer header is read with the whole file.
constexpr std::uintmax_t kHeaderBytes = 4096;

void RequireUsableSize(std::uintmax_t size) {
  if (size <= static_cast<std::uintmax_t>(kMaxImageBytes)) return;
  throw ImageError("expected at most 64 MiB, got " + std::to_string(size) + " bytes");
}

/// The bytes of a file, or the first of them.
class FileBytes {
 public:
  /// Throws ImageError unless it is a regular file of a usable size.
  explicit FileBytes(const ItemFile& file) : file_(file) {
    if (file.bytes) {
      size_ = file.bytes->size();
    } else {
      if (const std::string reason = WhyNotOpened(file.name); !reason.empty()) {
        throw ImageError(reason);
      }
      std::error_code failure;
      size_ = std::filesystem::file_size(file.name, failure);
      if (failure) throw ImageError(failure.message());
    }
    RequireUsableSize(size_);
  }

  std::uintmax_t size() const { return size_; }
  std::span<const std::uint8_t> All() { return First(size_); }
  std::span<const std::uint8_t> First(std::uintmax_t count) {
    if (file_.bytes) return file_.bytes->first(static_cast<std::size_t>(count));
    std::ifstream stream(file_.name, std::ios::binary);
    if (!stream) throw ImageError(std::string("could not be opened: ") + std::strerror(errno));
    read_.resize(static_cast<std::size_t>(count));
    stream.read(reinterpret_cast<char*>(read_.data()), static_cast<std::streamsize>(count));
    if (stream.gcount() != static_cast<std::streamsize>(count)) {
      throw ImageError("expected " + std::to_string(count) + " bytes, could read " +
                       std::to_string(stream.gcount()));
    }
    return read_;
  }

 private:
  const ItemFile& file_;
  std::uintmax_t size_ = 0;
  std::vector<std::uint8_t> read_;
};

Decoded Decode(std::span<const std::uint8_t> bytes, ImagePart part) {
  return At(FormatOf(bytes)).decode(bytes, part);
}

ImageFacts FactsOf(std::span<const std::uint8_t> bytes, ImagePart decoded) {
  const Image image = Decode(bytes, decoded).image;
  return {FormatOf(bytes), image.width, image.height};
}

/// Calls `decode` with the first bytes and, if that throws, with the whole file.
template <class Decode>
auto FromHeader(const ItemFile& file, Decode decode) {
  FileBytes bytes(file);
  if (bytes.size() > kHeaderBytes) {
    const std::span<const std::uint8_t> start = bytes.First(kHeaderBytes);
    static_cast<void>(FormatOf(start));  // an error of the format is final
    try {
      return decode(start);
    } catch (const ImageError&) {
    }
  }
  return decode(bytes.All());
}

/// Prefixes errors of `action` with the file's name.
template <class Action>
auto WithName(const ItemFile& file, Action action) {
  try {
    return action();
  } catch (const ImageError& error) {
    throw ImageError(file.name + ": " + error.what());
  }
}

}  // namespace

std::string_view ToString(ImageFormat format) { return At(format).name; }

Image DecodeImage(std::span<const std::uint8_t> bytes) {
  Decoded decoded = Decode(bytes, ImagePart::kPixels);
  return Upright(std::move(decoded.image), decoded.orientation);
}

Image ReadImage(const ItemFile& file) {
  return WithName(file, [&] { return DecodeImage(FileBytes(file).All()); });
}

ImageFacts CheckImage(const ItemFile& file, bool decode) {
  return WithName(file, [&] {
    if (decode) return FactsOf(FileBytes(file).All(), ImagePart::kPixels);
    return FromHeader(
        file, [](std::span<const std::uint8_t> bytes) { return FactsOf(bytes, ImagePart::kSize); });
  });
}

PixelSize UprightSizeOf(std::span<const std::uint8_t> bytes) {
  const auto [image, orientation] = Decode(bytes, ImagePart::kOrientation);
  return IsTurned(orientation) ? PixelSize{image.width, image.height}
                               : PixelSize{image.height, image.width};
}

PixelSize ReadUprightSize(const ItemFile& file) {
  return WithName(file, [&] { return FromHeader(file, UprightSizeOf); });
}

TileGrid GridOf(const ImageField& field, PixelSize image) {
  return ChooseGrid(image, field.size(), field.recipe().grids);
}

namespace {

/// The pixels of an image, [height, width, 3], in the middle of black ones.
std::vector<std::uint8_t> Framed(std::span<const std::uint8_t> pixels, PixelSize size,
                                 PixelSize frame) {
  const auto bytes = [](std::int64_t num_pixels) {
    return static_cast<std::size_t>(num_pixels * 3);
  };
  std::vector<std::uint8_t> output(bytes(frame.height * frame.width), 0);
  const std::int64_t top = (frame.height - size.height) / 2;
  const std::int64_t left = (frame.width - size.width) / 2;
  for (std::int64_t y = 0; y < size.height; ++y) {
    std::ranges::copy(pixels.subspan(bytes(y * size.width), bytes(size.width)),
                      output.data() + bytes((top + y) * frame.width + left));
  }
  return output;
}

}  // namespace

std::vector<std::uint8_t> ToSquares(const Image& image, const ImageField& field) {
  const ImageRecipe& recipe = field.recipe();
  const std::int64_t side = field.size();
  if (!recipe.has_tiles()) return FitIntoSquare(image, side, recipe);
  std::vector<std::uint8_t> squares = Resized(image, {side, side}, recipe.resampling);
  const PixelSize whole{image.height, image.width};
  const TileGrid grid = GridOf(field, whole);
  const PixelSize frame{grid.rows * side, grid.columns * side};
  const PixelSize inside = SizeInside(whole, frame);
  const std::vector<std::uint8_t> framed =
      Framed(Resized(image, inside, recipe.resampling), inside, frame);
  const auto row_bytes = static_cast<std::size_t>(side * 3);
  for (std::int64_t tile = 0; tile < grid.num_tiles(); ++tile) {
    for (std::int64_t y = 0; y < side; ++y) {
      const std::int64_t row =
          (tile / grid.columns * side + y) * grid.columns + tile % grid.columns;
      const auto begin = framed.begin() + static_cast<std::ptrdiff_t>(row * side * 3);
      squares.insert(squares.end(), begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
    }
  }
  return squares;
}

namespace {

/// Divides by 255 and normalises a square, [pixels, 3] to [3, pixels].
void NormaliseSquare(std::span<const std::uint8_t> square, const ImageRecipe& recipe,
                     float* output) {
  std::array<std::array<float, 256>, 3> normalised;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    // The order and the types of these steps are those of transformers.
    const auto mean = static_cast<float>(recipe.mean[channel]);
    const auto deviation = static_cast<float>(recipe.deviation[channel]);
    for (std::size_t value = 0; value < 256; ++value) {
      const auto rescaled = static_cast<float>(static_cast<double>(value) * (1.0 / 255.0));
      normalised[channel][value] = (rescaled - mean) / deviation;
    }
  }
  const std::size_t num_pixels = square.size() / 3;
  for (std::size_t i = 0; i < num_pixels; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      output[channel * num_pixels + i] = normalised[channel][square[3 * i + channel]];
    }
  }
}

}  // namespace

void Normalise(std::span<const std::uint8_t> squares, const ImageField& field,
               std::span<float> output) {
  if (output.size() != squares.size()) {
    throw std::invalid_argument("image: expected room for " + std::to_string(squares.size()) +
                                " numbers, got " + std::to_string(output.size()));
  }
  const auto size = static_cast<std::size_t>(NumElements(field.row_shape()));
  for (std::size_t begin = 0; begin < squares.size(); begin += size) {
    NormaliseSquare(squares.subspan(begin, size), field.recipe(), output.data() + begin);
  }
}

void ToPixels(const Image& image, const ImageField& field, std::span<float> output) {
  Normalise(ToSquares(image, field), field, output);
}

}  // namespace troupe
