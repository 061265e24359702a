// A field of samples that a module reads: its type, and the conversion of its items to numbers.
//
// An item (an image, an audio clip) becomes a float32 tensor [length, row shape...]. The items of a
// batch are contiguous along dimension 0. data/images/preprocessor.hpp makes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/shape.hpp"

namespace troupe {

class Field {
 public:
  virtual ~Field() = default;
  /// Returns the word for an item in texts: "image". Also the field's name unless the module states
  /// one.
  virtual std::string_view word() const = 0;
  /// Returns the shape of one entry of dimension 0: {3, S, S} for an image, {bins} for a frame of
  /// audio.
  virtual Shape row_shape() const = 0;
};

/// How an image becomes the square that an encoder reads.
enum class ImageFit {
  kCrop,     ///< the shorter side is resized to the square's, the middle of the longer one is kept
  kPad,      ///< extended to a square in the mean colour, the image in its middle, then resized
  kStretch,  ///< both sides are resized to the square's
  kAnyres    ///< several squares: the image stretched, then the tiles of a grid over it
};
/// In the order of ImageFit.
inline const std::vector<std::string> kImageFitWords = {"crop", "pad", "stretch", "anyres"};

/// A grid of tiles, each a square that an encoder reads.
struct TileGrid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t num_tiles() const { return rows * columns; }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};
/// "2x1": rows and columns.
inline std::string ToString(const TileGrid& grid) {
  return std::to_string(grid.rows) + "x" + std::to_string(grid.columns);
}
inline constexpr std::int64_t kMaxGridSide = 16;  ///< tiles along a side of a grid

/// The grids of LLaVA-NeXT, in its order.
inline const std::vector<TileGrid> kUsualGrids = {{1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 3}};

/// The filter of the resize. Both widen where the image shrinks.
enum class Resampling { kBicubic, kBilinear };
/// In the order of Resampling.
inline const std::vector<std::string> kResamplingWords = {"bicubic", "bilinear"};

/// The steps from decoded pixels to an encoder's numbers. kImageRecipeKeys names the members in
/// configurations.
struct ImageRecipe {
  ImageFit fit = ImageFit::kCrop;
  Resampling resampling = Resampling::kBicubic;
  // Of values in [0, 1], by channel.
  std::array<double, 3> mean = {0.5, 0.5, 0.5};
  std::array<double, 3> deviation = {0.5, 0.5, 0.5};
  std::vector<TileGrid> grids = {};  ///< with kAnyres, to choose from; empty otherwise

  bool has_tiles() const { return fit == ImageFit::kAnyres; }
  /// Returns the most squares of an image.
  std::int64_t most_squares() const {
    std::int64_t most = 0;
    for (const TileGrid& each : grids) most = std::max(most, each.num_tiles());
    return 1 + most;
  }
  friend bool operator==(const ImageRecipe&, const ImageRecipe&) = default;
};

inline constexpr std::array<std::string_view, 5> kImageRecipeKeys = {
    "image_fit", "image_resampling", "image_mean", "image_std", "image_grids"};

/// The values that CLIP was trained with.
inline const ImageRecipe kClipImages = {.mean = {0.48145466, 0.4578275, 0.40821073},
                                        .deviation = {0.26862954, 0.26130258, 0.27577711}};
/// Maps values in [0, 1] to [-1, 1].
inline const ImageRecipe kCentredImages = {};

/// Image files. Each becomes a square of `size` pixels, or with tiles several. The length of an item
/// is the number of its squares.
class ImageField final : public Field {
 public:
  ImageField(std::int64_t size, const ImageRecipe& recipe) : size_(size), recipe_(recipe) {}

  std::string_view word() const override { return "image"; }
  Shape row_shape() const override { return {3, size_, size_}; }
  std::int64_t size() const { return size_; }
  const ImageRecipe& recipe() const { return recipe_; }

 private:
  std::int64_t size_;
  ImageRecipe recipe_;
};

}  // namespace troupe
