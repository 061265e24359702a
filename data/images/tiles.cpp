#include "data/images/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>

#include "layout/route.hpp"
#include "layout/text.hpp"

namespace troupe {

TileGrid ChooseGrid(PixelSize image, std::int64_t side, std::span<const TileGrid> grids) {
  TileGrid best = grids.front();
  std::int64_t most_shown = -1;
  std::int64_t least_left = 0;
  for (const TileGrid& grid : grids) {
    const std::int64_t height = grid.rows * side;
    const std::int64_t width = grid.columns * side;
    const double scale = std::min(static_cast<double>(width) / static_cast<double>(image.width),
                                  static_cast<double>(height) / static_cast<double>(image.height));
    const auto scaled = [&](std::int64_t pixels) {
      return static_cast<std::int64_t>(static_cast<double>(pixels) * scale);
    };
    const std::int64_t shown =
        std::min(scaled(image.width) * scaled(image.height), image.width * image.height);
    const std::int64_t left = width * height - shown;
    if (shown < most_shown || (shown == most_shown && left >= least_left)) continue;
    best = grid;
    most_shown = shown;
    least_left = left;
  }
  return best;
}

PixelSize SizeInside(PixelSize image, PixelSize frame) {
  const double across = static_cast<double>(frame.width) / static_cast<double>(image.width);
  const double down = static_cast<double>(frame.height) / static_cast<double>(image.height);
  const auto scaled = [](std::int64_t pixels, double scale, std::int64_t most) {
    return std::min(static_cast<std::int64_t>(std::ceil(static_cast<double>(pixels) * scale)),
                    most);
  };
  if (across < down) return {scaled(image.height, across, frame.height), frame.width};
  return {frame.height, scaled(image.width, down, frame.width)};
}

ItemPlaces PlacesInOrder(std::int64_t length, std::int64_t num_rows) {
  ItemPlaces places{.length = length,
                    .num_tokens = num_rows,
                    .rows = std::vector<std::int64_t>(static_cast<std::size_t>(num_rows)),
                    .newlines = {}};
  std::iota(places.rows.begin(), places.rows.end(), 0);
  return places;
}

/// int(round(number, 7)) of Python, for positive numbers.
static std::int64_t RoundedAsPython(double number) {
  return std::strtoll(Formatted("%.7f", number).c_str(), nullptr, 10);
}

/// Returns the rows of a frame, `frame` long, that an image covers in the direction in which it does not
/// fill it. `pixels`: its length there; `scale`: rows per pixel.
static Interval Covered(std::int64_t frame, std::int64_t pixels, double scale) {
  const std::int64_t length = RoundedAsPython(static_cast<double>(pixels) * scale);
  const std::int64_t cut = (frame - length) / 2;
  return {cut, frame - cut};
}

ItemPlaces PlacesOfTiles(PixelSize image, TileGrid grid, std::int64_t side) {
  const std::int64_t height = grid.rows * side;
  const std::int64_t width = grid.columns * side;
  const auto ratio = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  Interval lines{0, height};
  Interval columns{0, width};
  if (ratio(image.width, image.height) > ratio(width, height)) {
    lines = Covered(height, image.height, ratio(width, image.width));
  } else {
    columns = Covered(width, image.width, ratio(height, image.height));
  }
  ItemPlaces places = PlacesInOrder(1 + grid.num_tiles(), side * side);
  places.rows.resize(static_cast<std::size_t>(places.length * side * side), -1);
  for (std::int64_t line = lines.begin; line < lines.end; ++line) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t square = 1 + line / side * grid.columns + column / side;
      const std::int64_t row = (square * side + line % side) * side + column % side;
      places.rows[static_cast<std::size_t>(row)] = places.num_tokens++;
    }
    places.newlines.push_back(places.num_tokens++);
  }
  return places;
}

}  // namespace troupe
