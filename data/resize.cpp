#include "data/resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

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

std::uint8_t ToByte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

using Colour = std::array<std::int32_t, kChannels>;

/// Resizes a row: writes [taps, 3].
void NarrowRow(const std::uint8_t* row, const std::vector<Taps>& across, const Colour& fill,
               std::uint8_t* output) {
  for (const Taps& taps : across) {
    const std::uint8_t* pixel = row + static_cast<std::size_t>(taps.first) * kChannels;
    Colour sum;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      sum[channel] = kHalf + taps.fill * fill[channel];
    }
    for (const std::int32_t weight : taps.weights) {
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        sum[channel] += pixel[channel] * weight;
      }
      pixel += kChannels;
    }
    for (const std::int32_t value : sum) *output++ = ToByte(value);
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

void AddRow(std::int32_t weight, std::span<const std::uint8_t> row, std::int32_t* sums) {
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

/// Resizes along rows, then along columns.
std::vector<std::uint8_t> AcrossThenDown(const Image& image, const Plan& plan) {
  const auto& [across, down, fill] = plan;
  const std::vector<std::uint8_t> outside = FillRow(across, fill);
  const std::size_t row_bytes = outside.size();
  std::vector<std::int32_t> sums(down.size() * row_bytes, kHalf);
  for (std::size_t i = 0; i < down.size(); ++i) {
    AddRow(down[i].fill, outside, sums.data() + i * row_bytes);
  }
  // Each row of the image is narrowed once and added to the rows of the output that it is part of.
  const auto end_of = [](const Taps& taps) { return taps.first + std::ssize(taps.weights); };
  std::vector<std::uint8_t> narrowed(row_bytes);
  std::size_t open = 0;  // the first row of the output that is not complete
  for (std::int64_t y = down.front().first; y < end_of(down.back()); ++y) {
    NarrowRow(RowOf(image, y).data(), across, fill, narrowed.data());
    while (open < down.size() && end_of(down[open]) <= y) ++open;
    for (std::size_t i = open; i < down.size() && down[i].first <= y; ++i) {
      const auto tap = static_cast<std::size_t>(y - down[i].first);
      if (tap >= down[i].weights.size()) continue;
      AddRow(down[i].weights[tap], narrowed, sums.data() + i * row_bytes);
    }
  }
  std::vector<std::uint8_t> output(sums.size());
  std::ranges::transform(sums, output.begin(), ToByte);
  return output;
}

/// Resizes along columns, then along rows. There is nothing outside of the image.
std::vector<std::uint8_t> DownThenAcross(const Image& image, const Plan& plan) {
  const std::size_t row_bytes = plan.across.size() * kChannels;
  std::vector<std::uint8_t> output(plan.down.size() * row_bytes);
  std::vector<std::uint8_t> lowered(RowOf(image, 0).size());
  std::vector<std::int32_t> sums(lowered.size());
  for (std::size_t i = 0; i < plan.down.size(); ++i) {
    std::ranges::fill(sums, kHalf);
    std::int64_t y = plan.down[i].first;
    for (const std::int32_t weight : plan.down[i].weights) {
      AddRow(weight, RowOf(image, y++), sums.data());
    }
    std::ranges::transform(sums, lowered.begin(), ToByte);
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
