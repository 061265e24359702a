#include "data/resize.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr int kWeightBits = 22;  // of Pillow: 32 - 8 for a pixel - 2 for overshoot
constexpr double kSupport = 2.0;
constexpr std::size_t kChannels = 3;

double Cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

/// One pixel of the output: a weighted sum of neighbours along one side.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

/// Returns the taps of output pixel `place`, where `scale` input pixels become one.
Taps TapsOf(std::int64_t place, std::int64_t length, double scale) {
  const double stretch = std::max(scale, 1.0);
  const double support = kSupport * stretch;
  const double centre = (static_cast<double>(place) + 0.5) * scale;
  const double step = 1.0 / stretch;
  // Truncates as Pillow does. Below zero, the maximum follows anyway.
  // NOLINTBEGIN(bugprone-incorrect-roundings)
  const auto low = static_cast<std::int64_t>(centre - support + 0.5);
  const auto high = static_cast<std::int64_t>(centre + support + 0.5);
  // NOLINTEND(bugprone-incorrect-roundings)
  Taps taps{std::max<std::int64_t>(low, 0), {}};
  std::vector<double> exact;
  double sum = 0.0;
  for (std::int64_t i = taps.first; i < std::min(high, length); ++i) {
    exact.push_back(Cubic((static_cast<double>(i) - centre + 0.5) * step));
    sum += exact.back();
  }
  for (const double weight : exact) {
    const double scaled = (sum == 0.0 ? weight : weight / sum) * (1 << kWeightBits);
    taps.weights.push_back(static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return taps;
}

/// Returns the taps of the middle `size` output pixels of a side that becomes `resized` long.
/// Computes only these, so a long thin image does not need a huge intermediate image.
std::vector<Taps> MiddleTaps(std::int64_t length, std::int64_t resized, int size) {
  const double scale = static_cast<double>(length) / static_cast<double>(resized);
  const std::int64_t begin = (resized - size) / 2;
  std::vector<Taps> taps;
  for (int i = 0; i < size; ++i) taps.push_back(TapsOf(begin + i, length, scale));
  return taps;
}

/// Returns a weighted sum of pixels that are `stride` bytes apart.
std::uint8_t WeightedSum(const std::uint8_t* pixel, std::size_t stride,
                         const std::vector<std::int32_t>& weights) {
  std::int32_t sum = 1 << (kWeightBits - 1);
  for (const std::int32_t weight : weights) {
    sum += *pixel * weight;
    pixel += stride;
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

}  // namespace

std::vector<std::uint8_t> ResizeAndCrop(const Image& image, int size) {
  if (image.width < 1 || image.height < 1 || size < 1) {
    throw ImageError("expected an image with pixels, got " + std::to_string(image.width) + " x " +
                     std::to_string(image.height));
  }
  const std::int64_t shorter = std::min(image.width, image.height);
  const auto across = MiddleTaps(image.width, image.width * std::int64_t{size} / shorter, size);
  const auto down = MiddleTaps(image.height, image.height * std::int64_t{size} / shorter, size);

  const std::int64_t top = down.front().first;
  const std::int64_t bottom = down.back().first + std::ssize(down.back().weights);
  const std::size_t in_row = static_cast<std::size_t>(image.width) * kChannels;
  const std::size_t out_row = static_cast<std::size_t>(size) * kChannels;
  std::vector<std::uint8_t> narrowed;  // rows [top, bottom), columns as in the output
  narrowed.reserve(static_cast<std::size_t>(bottom - top) * out_row);
  for (std::int64_t y = top; y < bottom; ++y) {
    const std::uint8_t* const row = image.pixels.data() + static_cast<std::size_t>(y) * in_row;
    for (const Taps& taps : across) {
      const std::uint8_t* const pixel = row + static_cast<std::size_t>(taps.first) * kChannels;
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        narrowed.push_back(WeightedSum(pixel + channel, kChannels, taps.weights));
      }
    }
  }
  std::vector<std::uint8_t> output;
  output.reserve(static_cast<std::size_t>(size) * out_row);
  for (const Taps& taps : down) {
    const std::uint8_t* const row =
        narrowed.data() + static_cast<std::size_t>(taps.first - top) * out_row;
    for (std::size_t i = 0; i < out_row; ++i) {
      output.push_back(WeightedSum(row + i, out_row, taps.weights));
    }
  }
  return output;
}

}  // namespace troupe
