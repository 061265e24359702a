// The tiles of images ("anyres" of LLaVA-NeXT). An image becomes several squares that an encoder
// reads: the image stretched, then the tiles of a grid, over which the image lies as large as it
// fits, in the middle. The functions decide sizes and places; data/images/image.hpp makes the pixels.
// Source: transformers 4.57, image_processing_llava_next.py, modeling_llava_next.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kinds/field.hpp"

namespace troupe {

struct PixelSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  friend bool operator==(const PixelSize&, const PixelSize&) = default;
};

/// Returns the grid of squares of `side` pixels that shows most pixels of the image; of several the
/// one with the fewest pixels left over, of those the first. `grids` is not empty.
TileGrid ChooseGrid(PixelSize image, std::int64_t side, std::span<const TileGrid> grids);

/// Returns the largest size of the image's shape, rounded up, that lies in `frame`.
PixelSize SizeInside(PixelSize image, PixelSize frame);

/// Where the rows of an item go, among the tokens that stand for the item.
struct ItemPlaces {
  std::int64_t length = 0;  ///< of the item along dimension 0
  std::int64_t num_tokens = 0;
  std::vector<std::int64_t> rows;      ///< of each row that the encoder emits; -1: left out
  std::vector<std::int64_t> newlines;  ///< of the newline rows
};

/// All rows in their order.
ItemPlaces PlacesInOrder(std::int64_t length, std::int64_t num_rows);

/// The rows of the first square in their order; then, line by line, those of all tiles as they lie in
/// the image, a newline after each line. Lines and columns of the padding are left out.
///   side   rows along a side of a square
ItemPlaces PlacesOfTiles(PixelSize image, TileGrid grid, std::int64_t side);

}  // namespace troupe
