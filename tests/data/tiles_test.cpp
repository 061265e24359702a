// The tiles of images of many sizes, as LLaVA-NeXT cuts them and packs their rows.
// tools/oracle/record_tiles.py has made tests/oracle/tiles.txt and describes its lines.
#include "data/images/tiles.hpp"

#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "files/sha256.hpp"

namespace troupe {
namespace {

std::vector<TileGrid> GridsUpTo(std::int64_t side) {
  std::vector<TileGrid> grids;
  for (std::int64_t rows = 1; rows <= side; ++rows) {
    for (std::int64_t columns = 1; columns <= side; ++columns) grids.push_back({rows, columns});
  }
  return grids;
}

/// The row that stands at each token, -2 for a newline.
std::vector<std::int64_t> Packed(const ItemPlaces& places) {
  std::vector<std::int64_t> packed(static_cast<std::size_t>(places.num_tokens), -1);
  bool twice = false;
  const auto put = [&](std::int64_t place, std::int64_t row) {
    twice = std::exchange(packed.at(static_cast<std::size_t>(place)), row) != -1 || twice;
  };
  for (std::size_t row = 0; row < places.rows.size(); ++row) {
    if (places.rows[row] >= 0) put(places.rows[row], static_cast<std::int64_t>(row));
  }
  for (const std::int64_t place : places.newlines) put(place, -2);
  CHECK_FALSE(twice);
  return packed;
}

TEST_CASE("images of 600 sizes are cut and packed as by transformers", "[data]") {
  std::ifstream lines("tests/oracle/tiles.txt");
  PixelSize image;
  std::int64_t side = 0;
  std::int64_t rows = 0;
  std::string expected;
  int num_images = 0;
  std::set<std::int64_t> lengths;
  while (lines >> image.height >> image.width >> side >> rows >> expected) {
    INFO(image.height << " x " << image.width << ", tiles of " << side);
    ++num_images;
    const TileGrid grid = ChooseGrid(image, side, side == 336 ? kUsualGrids : GridsUpTo(4));
    const ItemPlaces places = PlacesOfTiles(image, grid, rows);
    const std::vector<std::int64_t> packed = Packed(places);
    const std::string bytes(reinterpret_cast<const char*>(packed.data()),
                            packed.size() * sizeof(packed[0]));
    CHECK(std::to_string(places.length) + ":" + Sha256Of(bytes).substr(0, 16) == expected);
    CHECK(std::ssize(places.rows) == places.length * rows * rows);
    lengths.insert(places.length);
  }
  CHECK(num_images == 600);
  CHECK(lengths.size() > 5);
}

TEST_CASE("an image lies in its grid as large as it fits", "[data]") {
  CHECK(SizeInside({100, 200}, {672, 336}) == PixelSize{168, 336});
  CHECK(SizeInside({200, 100}, {672, 336}) == PixelSize{672, 336});
  CHECK(SizeInside({201, 100}, {672, 336}) == PixelSize{672, 335});
  CHECK(SizeInside({1, 10'000}, {336, 672}) == PixelSize{1, 672});
}

}  // namespace
}  // namespace troupe
