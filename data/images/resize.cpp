#include "data/images/resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "layout/every_cpu.hpp"

namespace troupe {
namespace {

constexpr int kWeightBits = 22;  // of Pillow: 32 - 8 for a pixel - 2 for overshoot
constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
constexpr std::size_t kChannels = 3;

double Cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double Triangle(double x) { return std::max(1.0 - std::abs(x), 0.0); }

struct Filter {
  double support;
  double (*weight)(double x);
};

Filter FilterOf(Resampling resampling) {
  return resampling == Resampling::kBicubic ? Filter{2.0, Cubic} : Filter{1.0, Triangle};
}

/// One side of the image: it lies on a canvas, of which the middle is wanted after the resize.
struct Side {
  std::int64_t pixels = 0;   ///< of the image
  std::int64_t canvas = 0;   ///< at least as long
  std::int64_t resized = 0;  ///< length of the canvas after the resize

  std::int64_t offset() const { return (canvas - pixels) / 2; }
};

Side SideOf(std::int64_t pixels, std::int64_t other, std::int64_t size, ImageFit fit) {
  if (fit == ImageFit::kCrop) return {pixels, pixels, pixels * size / std::min(pixels, other)};
  return {pixels, fit == ImageFit::kPad ? std::max(pixels, other) : pixels, size};
}

/// One pixel of the output: a weighted sum of neighbours along one side.
struct Taps {
  std::int64_t first = 0;             ///< pixel of the image
  std::vector<std::int32_t> weights;  ///< of pixels of the image
  std::int32_t fill = 0;              ///< sum of the weights outside of the image
};

/// Returns the taps of pixel `place` of the resized canvas.
Taps TapsOf(std::int64_t place, const Side& side, const Filter& filter) {
  const double scale = static_cast<double>(side.canvas) / static_cast<double>(side.resized);
  const double stretch = std::max(scale, 1.0);
  const double support = filter.support * stretch;
  const double centre = (static_cast<double>(place) + 0.5) * scale;
  const double step = 1.0 / stretch;
  // Truncates as Pillow does. Below zero, the maximum follows anyway.
  // NOLINTBEGIN(bugprone-incorrect-roundings)
  const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
  const auto high = std::min(static_cast<std::int64_t>(centre + support + 0.5), side.canvas);
  // NOLINTEND(bugprone-incorrect-roundings)
  std::vector<double> exact;
  double sum = 0.0;
  for (std::int64_t i = low; i < high; ++i) {
    exact.push_back(filter.weight((static_cast<double>(i) - centre + 0.5) * step));
    sum += exact.back();
  }
  Taps taps{std::clamp<std::int64_t>(low - side.offset(), 0, side.pixels), {}, 0};
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double scaled = (sum == 0.0 ? exact[i] : exact[i] / sum) * (1 << kWeightBits);
    const auto weight = static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    const std::int64_t pixel = low + static_cast<std::int64_t>(i) - side.offset();
    if (pixel >= 0 && pixel < side.pixels) {
      taps.weights.push_back(weight);
    } else {
      taps.fill += weight;
    }
  }
  return taps;
}

/// Returns the taps of the middle `size` pixels of the resized canvas. Computes only these, so a
/// long thin image does not need a huge intermediate image.
std::vector<Taps> MiddleTaps(const Side& side, std::int64_t size, const Filter& filter) {
  const std::int64_t begin = (side.resized - size) / 2;
  std::vector<Taps> taps;
  for (std::int64_t i = 0; i < size; ++i) taps.push_back(TapsOf(begin + i, side, filter));
  return taps;
}

TROUPE_INLINED std::uint8_t ToByte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

TROUPE_FOR_EVERY_CPU void ToBytes(std::span<const std::int32_t> sums, std::uint8_t* output) {
  for (std::size_t i = 0; i < sums.size(); ++i) output[i] = ToByte(sums[i]);
}

using Colour = std::array<std::int32_t, kChannels>;

/// The three channels of a pixel and one unused number, since a CPU multiplies four numbers at once.
using Pixel [[gnu::vector_size(4 * sizeof(std::int32_t))]] = std::int32_t;

TROUPE_INLINED Pixel PixelAt(const std::uint8_t* place) {
  using Bytes [[gnu::vector_size(16)]] = std::uint8_t;
  using Words [[gnu::vector_size(16)]] = std::uint16_t;
  std::int32_t four = 0;
  std::memcpy(&four, place, sizeof four);
  // Not __builtin_convertvector, of which GCC 12 makes a dozen instructions.
  const auto bytes = reinterpret_cast<Bytes>(Pixel{four});
  const auto words = reinterpret_cast<Words>(__builtin_shufflevector(
      bytes, Bytes{}, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  return reinterpret_cast<Pixel>(__builtin_shufflevector(words, Words{}, 0, 8, 1, 9, 2, 10, 3, 11));
}

/// Resizes a row, behind which a byte can be read: writes [taps, 3].
TROUPE_FOR_EVERY_CPU void NarrowRow(const std::uint8_t* row, const std::vector<Taps>& across,
                                    const Colour& fill, std::uint8_t* output) {
  const Pixel outside{fill[0], fill[1], fill[2]};
  for (const Taps& taps : across) {
    const std::uint8_t* place = row + static_cast<std::size_t>(taps.first) * kChannels;
    Pixel sum = kHalf + taps.fill * outside;
    for (const std::int32_t weight : taps.weights) {
      sum += PixelAt(place) * weight;
      place += kChannels;
    }
    sum >>= kWeightBits;
    sum = sum < 0 ? Pixel{} : sum;
    sum = sum > 255 ? Pixel{} + 255 : sum;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      *output++ = static_cast<std::uint8_t>(sum[channel]);
    }
  }
}

/// Returns a row of the canvas above or below the image, resized.
std::vector<std::uint8_t> FillRow(const std::vector<Taps>& across, const Colour& fill) {
  std::vector<std::uint8_t> row;
  for (const Taps& taps : across) {
    std::int32_t weight = taps.fill;
    for (const std::int32_t one : taps.weights) weight += one;
    for (const std::int32_t value : fill) row.push_back(ToByte(kHalf + weight * value));
  }
  return row;
}

TROUPE_FOR_EVERY_CPU void AddRow(std::int32_t weight, std::span<const std::uint8_t> row,
                                 std::int32_t* sums) {
  for (std::size_t i = 0; i < row.size(); ++i) sums[i] += weight * row[i];
}

std::span<const std::uint8_t> RowOf(const Image& image, std::int64_t y) {
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * kChannels;
  return {image.pixels.data() + static_cast<std::size_t>(y) * row_bytes, row_bytes};
}

/// The taps of both directions, and what is outside of the image.
struct Plan {
  std::vector<Taps> across;
  std::vector<Taps> down;
  Colour fill;
};

std::int64_t EndOf(const Taps& taps) { return taps.first + std::ssize(taps.weights); }

/// The most rows of the output that one row of the image is part of.
std::size_t MostOpen(const std::vector<Taps>& down) {
  std::size_t most = 1;
  for (std::size_t i = 0, next = 0; i < down.size(); ++i) {
    while (next < down.size() && down[next].first < EndOf(down[i])) ++next;
    if (next > i) most = std::max(most, next - i);
  }
  return most;
}

/// Resizes along rows, then along columns.
std::vector<std::uint8_t> AcrossThenDown(const Image& image, const Plan& plan) {
  const std::vector<Taps>& down = plan.down;
  const std::vector<std::uint8_t> outside = FillRow(plan.across, plan.fill);
  const std::size_t row_bytes = outside.size();
  const std::size_t most_open = MostOpen(down);
  std::vector<std::int32_t> open(most_open * row_bytes);
  const auto sums_of = [&](std::size_t i) {
    return std::span(open).subspan(i % most_open * row_bytes, row_bytes);
  };
  std::size_t next = 0;  // the first row of the output that is not begun
  const auto begin_next = [&] {
    std::ranges::fill(sums_of(next), kHalf);
    AddRow(down[next].fill, outside, sums_of(next).data());
    ++next;
  };
  // Each row of the image is narrowed once and added to the rows of the output that it is part of.
  std::vector<std::uint8_t> narrowed(row_bytes);
  std::vector<std::uint8_t> last(RowOf(image, 0).size() + 1);
  std::ranges::copy(RowOf(image, image.height - 1), last.begin());
  std::int64_t y = down.front().first;
  std::vector<std::uint8_t> output(down.size() * row_bytes);
  for (std::size_t i = 0; i < down.size(); ++i) {
    if (next == i) begin_next();
    for (y = std::max(y, down[i].first); y < EndOf(down[i]); ++y) {
      while (next < down.size() && down[next].first <= y) begin_next();
      const std::uint8_t* const row = y + 1 < image.height ? RowOf(image, y).data() : last.data();
      NarrowRow(row, plan.across, plan.fill, narrowed.data());
      for (std::size_t j = i; j < next; ++j) {
        AddRow(down[j].weights[static_cast<std::size_t>(y - down[j].first)], narrowed,
               sums_of(j).data());
      }
    }
    ToBytes(sums_of(i), output.data() + i * row_bytes);
  }
  return output;
}

/// Resizes along columns, then along rows. There is nothing outside of the image.
std::vector<std::uint8_t> DownThenAcross(const Image& image, const Plan& plan) {
  const std::size_t row_bytes = plan.across.size() * kChannels;
  std::vector<std::uint8_t> output(plan.down.size() * row_bytes);
  std::vector<std::int32_t> sums(RowOf(image, 0).size());
  std::vector<std::uint8_t> lowered(sums.size() + 1);
  for (std::size_t i = 0; i < plan.down.size(); ++i) {
    std::ranges::fill(sums, kHalf);
    std::int64_t y = plan.down[i].first;
    for (const std::int32_t weight : plan.down[i].weights) {
      AddRow(weight, RowOf(image, y++), sums.data());
    }
    ToBytes(sums, lowered.data());
    NarrowRow(lowered.data(), plan.across, plan.fill, output.data() + i * row_bytes);
  }
  return output;
}

}  // namespace

static void RequirePixels(const Image& image) {
  if (image.width > 0 && image.height > 0) return;
  throw ImageError("expected an image with pixels, got " + std::to_string(image.width) + " x " +
                   std::to_string(image.height));
}

/// Returns the middle `size` of the resized canvas.
static std::vector<std::uint8_t> Middle(const Image& image, const Side& height, const Side& width,
                                        PixelSize size, Resampling resampling, const Colour& fill) {
  const Filter filter = FilterOf(resampling);
  const Plan plan{MiddleTaps(width, size.width, filter), MiddleTaps(height, size.height, filter),
                  fill};
  // Since version 13, Pillow resizes columns first if the image loses far more rows than columns. A
  // padded image is square and never does.
  const std::int64_t rows_lost = height.canvas - height.resized;
  const bool down_first = rows_lost > 0 && rows_lost > 2 * (width.canvas - width.resized);
  return down_first ? DownThenAcross(image, plan) : AcrossThenDown(image, plan);
}

std::vector<std::uint8_t> FitIntoSquare(const Image& image, std::int64_t size,
                                        const ImageRecipe& recipe) {
  RequirePixels(image);
  Colour fill;
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    fill[channel] = static_cast<std::int32_t>(recipe.mean[channel] * 255);
  }
  return Middle(image, SideOf(image.height, image.width, size, recipe.fit),
                SideOf(image.width, image.height, size, recipe.fit), {size, size},
                recipe.resampling, fill);
}

std::vector<std::uint8_t> Resized(const Image& image, PixelSize size, Resampling resampling) {
  RequirePixels(image);
  return Middle(image, {image.height, image.height, size.height},
                {image.width, image.width, size.width}, size, resampling, {});
}

}  // namespace troupe
