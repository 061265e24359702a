#include "data/draw.hpp"

#include <algorithm>
#include <cstdlib>

namespace troupe {
namespace {

constexpr int kSubpixels = 4;  // per pixel and direction

/// Rotations by about -16, -8, 0, 8, 16 degrees, as 1024 times cosine and sine.
struct Rotation {
  std::int64_t cosine;
  std::int64_t sine;
};
constexpr std::array<Rotation, kNumTilts> kTilts = {
    {{984, -282}, {1014, -143}, {1024, 0}, {1014, 143}, {984, 282}}};

/// Returns whether the point (x, y), relative to the shape's centre and in its rotated axes, is
/// inside.
bool Covers(ShapeKind kind, std::int64_t x, std::int64_t y, std::int64_t radius) {
  switch (kind) {
    case ShapeKind::kCircle:
      return x * x + y * y <= radius * radius;
    case ShapeKind::kSquare: {
      const std::int64_t half = radius * 7 / 8;
      return std::abs(x) <= half && std::abs(y) <= half;
    }
    case ShapeKind::kTriangle:
      // The apex is at the top, and the width equals the height: |x| grows by half of the growth of
      // y.
      return y <= radius * 7 / 8 && 2 * std::abs(x) <= y + radius;
    case ShapeKind::kCross: {
      const std::int64_t arm = radius * 5 / 16;
      return std::max(std::abs(x), std::abs(y)) <= radius &&
             std::min(std::abs(x), std::abs(y)) <= arm;
    }
  }
  return false;
}

bool Covers(const Shape2d& shape, std::int64_t x, std::int64_t y) {
  const Rotation& tilt = kTilts[static_cast<std::size_t>(shape.tilt)];
  const std::int64_t dx = x - shape.x;
  const std::int64_t dy = y - shape.y;
  return Covers(shape.kind, (dx * tilt.cosine + dy * tilt.sine) / 1024,
                (dy * tilt.cosine - dx * tilt.sine) / 1024, shape.radius);
}

Colour ColourAt(const Scene& scene, std::int64_t x, std::int64_t y) {
  for (auto shape = scene.shapes.rbegin(); shape != scene.shapes.rend(); ++shape) {
    if (Covers(*shape, x, y)) return shape->colour;
  }
  Colour colour = {};
  const int down = static_cast<int>(std::clamp<std::int64_t>(y, 0, kPlane));
  for (std::size_t i = 0; i < colour.size(); ++i) {
    colour[i] = (scene.top[i] * (kPlane - down) + scene.bottom[i] * down) / kPlane;
  }
  return colour;
}

}  // namespace

Image Draw(const Scene& scene, const View& view, int size) {
  Image image{size, size, {}};
  // Sample points are the middles of subpixels, counted in halves of them.
  const std::int64_t halves = 2LL * size * kSubpixels;
  const auto at = [&](int begin, std::int64_t subpixel) {
    return begin + (2 * subpixel + 1) * view.side / halves;
  };
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      Colour sum = {};
      for (int i = 0; i < kSubpixels * kSubpixels; ++i) {
        const Colour colour = ColourAt(scene, at(view.x, column * kSubpixels + i % kSubpixels),
                                       at(view.y, row * kSubpixels + i / kSubpixels));
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += colour[c];
      }
      for (const int value : sum) {
        image.pixels.push_back(static_cast<std::uint8_t>(value / (kSubpixels * kSubpixels)));
      }
    }
  }
  return image;
}

}  // namespace troupe
