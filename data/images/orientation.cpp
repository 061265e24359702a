#include "data/images/orientation.hpp"

#include <optional>
#include <utility>

namespace troupe {
namespace {

using TiffBytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kOrientationTag = 0x0112;

/// A TIFF file in memory, with the byte order that it states.
class Tiff {
 public:
  explicit Tiff(TiffBytes bytes) : bytes_(bytes), big_endian_(bytes[0] == 'M') {}

  /// Returns the number of `width` bytes at `offset`, if they are there.
  std::optional<std::uint32_t> At(std::size_t offset, std::size_t width) const {
    if (offset > bytes_.size() || bytes_.size() - offset < width) return std::nullopt;
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < width; ++i) {
      number = number << 8 | bytes_[offset + (big_endian_ ? i : width - 1 - i)];
    }
    return number;
  }

 private:
  TiffBytes bytes_;
  bool big_endian_;
};

/// Returns the bytes of a whole number of that TIFF type; 0 for other types.
std::size_t WidthOf(std::uint32_t type) {
  switch (type) {
    case 3:  // SHORT
    case 8:  // SSHORT
      return 2;
    case 4:  // LONG
    case 9:  // SLONG
      return 4;
    default:
      return 0;
  }
}

/// Returns the first number of the entry at `offset` if it is the orientation.
std::optional<std::uint32_t> OrientationAt(const Tiff& tiff, std::size_t offset) {
  const auto tag = tiff.At(offset, 2);
  const auto type = tiff.At(offset + 2, 2);
  const auto count = tiff.At(offset + 4, 4);
  if (tag != kOrientationTag || !type || !count || *count == 0) return std::nullopt;
  const std::size_t width = WidthOf(*type);
  if (width == 0) return std::nullopt;
  if (*count <= 4 / width) return tiff.At(offset + 8, width);
  const auto place = tiff.At(offset + 8, 4);
  return place ? tiff.At(*place, width) : std::nullopt;
}

std::optional<std::uint32_t> OrientationInTiff(TiffBytes bytes) {
  constexpr std::size_t kEntryBytes = 12;
  if (bytes.size() < 8) return std::nullopt;
  const bool tiff_magic = (bytes[0] == 'M' || bytes[0] == 'I') && bytes[1] == bytes[0] &&
                          ((bytes[2] == 0 && bytes[3] == 42) || (bytes[2] == 42 && bytes[3] == 0));
  if (!tiff_magic) return std::nullopt;
  const Tiff tiff(bytes);
  const std::size_t directory = *tiff.At(4, 4);
  const std::size_t count = tiff.At(directory, 2).value_or(0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (!tiff.At(entry + 8, 4)) break;  // the last bytes of an entry
    if (const auto found = OrientationAt(tiff, entry)) return found;
  }
  return std::nullopt;
}

/// Finds tiff:Orientation="6" or <tiff:Orientation>6<.
std::optional<std::uint32_t> OrientationInXmp(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != xmp.npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('>')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (rest.empty() || rest[0] < '0' || rest[0] > '9') continue;
    return static_cast<std::uint32_t>(rest[0] - '0');
  }
  return std::nullopt;
}

}  // namespace

int OrientationIn(std::span<const std::uint8_t> exif, std::string_view xmp) {
  constexpr std::string_view kStart("Exif\0\0", 6);
  for (int i = 0; i < 2; ++i) {
    const std::string_view text(reinterpret_cast<const char*>(exif.data()), exif.size());
    if (text.starts_with(kStart)) exif = exif.subspan(kStart.size());
  }
  auto found = OrientationInTiff(exif);
  if (!found) found = OrientationInXmp(xmp);
  return found && *found >= 1 && *found <= 8 ? static_cast<int>(*found) : 1;
}

Image Upright(Image image, int orientation) {
  if (orientation == 1) return image;
  // 5 to 8 exchange rows and columns, and some read them from the other end.
  const bool transposed = IsTurned(orientation);
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image upright{transposed ? image.height : image.width, transposed ? image.width : image.height,
                std::vector<std::uint8_t>(image.pixels.size())};
  const auto width = static_cast<std::ptrdiff_t>(image.width);
  const auto height = static_cast<std::ptrdiff_t>(image.height);
  std::uint8_t* output = upright.pixels.data();
  for (std::ptrdiff_t y = 0; y < upright.height; ++y) {
    for (std::ptrdiff_t x = 0; x < upright.width; ++x) {
      const std::ptrdiff_t column = transposed ? y : x;
      const std::ptrdiff_t row = transposed ? x : y;
      const std::uint8_t* const pixel =
          image.pixels.data() + ((from_bottom ? height - 1 - row : row) * width +
                                 (from_right ? width - 1 - column : column)) *
                                    3;
      for (int channel = 0; channel < 3; ++channel) *output++ = pixel[channel];
    }
  }
  return upright;
}

}  // namespace troupe
