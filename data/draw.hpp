// Draws anti-aliased shapes in integer arithmetic, so that every machine draws the same pixels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/image.hpp"

namespace troupe {

/// Side of the picture plane on which scenes are described, independent of the number of pixels.
inline constexpr int kPlane = 4096;

enum class ShapeKind : std::uint8_t { kCircle, kSquare, kTriangle, kCross };
inline constexpr int kNumShapeKinds = 4;

using Colour = std::array<int, 3>;  ///< red, green, blue, [0, 255]

/// Coordinates and sizes on the plane; x to the right, y down.
struct Shape2d {
  ShapeKind kind = ShapeKind::kCircle;
  Colour colour = {};
  int x = 0;  ///< centre
  int y = 0;
  int radius = 0;  ///< of the circle around it, approximately
  int tilt = 0;    ///< index into a table of small rotations, [0, kNumTilts)
};
inline constexpr int kNumTilts = 5;

/// Shapes on a background whose colour runs from top to bottom. Later shapes are in front.
struct Scene {
  Colour top = {};
  Colour bottom = {};
  std::vector<Shape2d> shapes;
};

/// The square part of the plane that is drawn.
struct View {
  int x = 0;  ///< left
  int y = 0;  ///< top
  int side = kPlane;
};

/// Draws `view` as `size` x `size` pixels, with 4 x 4 samples per pixel.
Image Draw(const Scene& scene, const View& view, int size);

}  // namespace troupe
