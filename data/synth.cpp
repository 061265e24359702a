#include "data/synth.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/image.hpp"
#include "files/file_error.hpp"
#include "layout/random_bits.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Side of the picture plane on which scenes are described, independent of the number of pixels.
constexpr int kPlane = 4096;

enum class ShapeKind : std::uint8_t { kCircle, kSquare, kTriangle, kCross };
constexpr int kNumShapeKinds = 4;

using Colour = std::array<int, 3>;  ///< red, green, blue, [0, 255]

/// 1024 times the cosine and the sine of an angle.
struct Rotation {
  std::int64_t cosine = 1024;
  std::int64_t sine = 0;
};
/// By about -16, -8, 0, 8, 16 degrees.
constexpr std::array<Rotation, 5> kTilts = {
    {{984, -282}, {1014, -143}, {1024, 0}, {1014, 143}, {984, 282}}};

/// Coordinates and sizes on the plane; x to the right, y down.
struct Shape2d {
  ShapeKind kind = ShapeKind::kCircle;
  Colour colour = {};
  int x = 0;  ///< centre
  int y = 0;
  int radius = 0;  ///< of the circle around it, approximately
  Rotation tilt;
  std::string name;  ///< "a red circle"
};

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

constexpr int kSubpixels = 4;  // per pixel and direction

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
  const Rotation& tilt = shape.tilt;
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

/// Draws `view` as `size` x `size` pixels, in integer arithmetic, so that every machine draws the
/// same.
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

// Keeps keys in the order that is easiest to read.
using Json = nlohmann::ordered_json;

struct NamedColour {
  std::string_view name;
  Colour value;
  std::array<std::string_view, 2> things;  ///< things of that colour, for the rows without an image
};

// Colours far from each other and from the dark backgrounds.
constexpr std::array<NamedColour, 6> kColours = {{
    {"red", {225, 35, 40}, {"blood", "a tomato"}},
    {"green", {40, 185, 65}, {"grass", "a frog"}},
    {"blue", {45, 85, 235}, {"the sky", "the sea"}},
    {"yellow", {250, 215, 45}, {"the sun", "a lemon"}},
    {"purple", {165, 60, 205}, {"a plum", "lavender"}},
    {"white", {245, 245, 245}, {"snow", "milk"}},
}};
constexpr std::array<std::string_view, kNumShapeKinds> kShapeNames = {"circle", "square",
                                                                      "triangle", "cross"};

int Scaled(int percent) { return kPlane * percent / 100; }

/// Draws one row's choices. Every row has a separate random stream, so a set with more rows begins
/// with the rows of the smaller one.
class RowArtist {
 public:
  RowArtist(std::uint64_t seed, bool train, int row)
      : bits_(MixBits(MixBits(MixBits(seed) + (train ? 1 : 2)) + static_cast<std::uint64_t>(row))) {
  }

  int Between(int low, int high) { return bits_.Between(low, high); }
  const NamedColour& AnyColour() { return kColours[Index(kColours.size())]; }

  /// Returns a large shape at a random place, completely inside the picture.
  Scene OneShape() {
    Scene scene = Background();
    const int radius = Between(Scaled(24), Scaled(36));
    const int low = std::min(radius * 5 / 4, kPlane / 2);
    const int x = Between(low, kPlane - low);
    const int y = Between(low, kPlane - low);
    scene.shapes = {ShapeAt(x, y, radius, AnyColour())};
    return scene;
  }

  /// Returns two shapes of different colours, the first clearly left of the second.
  Scene TwoShapes() {
    Scene scene = Background();
    const NamedColour& left = AnyColour();
    const NamedColour* right = &AnyColour();
    while (right == &left) right = &AnyColour();
    scene.shapes = {Half(Scaled(25), left), Half(Scaled(75), *right)};
    return scene;
  }

 private:
  std::size_t Index(std::size_t size) {
    return static_cast<std::size_t>(Between(0, static_cast<int>(size) - 1));
  }

  Scene Background() {
    Scene scene;
    for (std::size_t i = 0; i < 3; ++i) {
      scene.top[i] = Between(20, 90);
      scene.bottom[i] = Between(20, 90);
    }
    return scene;
  }

  Shape2d ShapeAt(int x, int y, int radius, const NamedColour& colour) {
    const std::size_t kind = Index(kShapeNames.size());
    const Rotation& tilt = kTilts[Index(kTilts.size())];
    return {static_cast<ShapeKind>(kind),
            colour.value,
            x,
            y,
            radius,
            tilt,
            "a " + std::string(colour.name) + " " + std::string(kShapeNames[kind])};
  }

  Shape2d Half(int x, const NamedColour& colour) {
    const int radius = Between(Scaled(17), Scaled(21));
    const int y = Between(Scaled(27), Scaled(73));
    return ShapeAt(x, y, radius, colour);
  }

  RandomBits bits_;
};

/// Writes one of the two sets, as two JSON files.
class SetWriter {
 public:
  SetWriter(const SynthOptions& options, bool train)
      : options_(options), train_(train), name_(train ? "train" : "held_out") {}

  void Write(int num_rows) {
    for (int row = 0; row < num_rows; ++row) WriteRow(row);
    Save(name_ + ".json", rows_);
    Save(name_ + "_two.json", rows_two_);
  }

 private:
  void WriteRow(int row) {
    id_ = name_ + Formatted("_%04d", row);
    RowArtist artist(options_.seed, train_, row);
    const int kind = artist.Between(0, 15);
    if (kind < 7) {
      const Scene scene = artist.OneShape();
      AddWithDetail(artist, scene, scene.shapes[0], scene.shapes[0].name);
    } else if (kind < 12) {
      const Scene scene = artist.TwoShapes();
      const Shape2d& closer = scene.shapes[artist.Between(0, 1) == 0 ? 0 : 1];
      AddWithDetail(artist, scene, closer, scene.shapes[0].name + " and " + scene.shapes[1].name);
    } else if (kind < 14) {
      AddTwoImages(artist);
    } else {
      AddQuestion(artist);
    }
  }

  /// Adds a row. Every second time, its two-encoder version asks about a close-up of `shape`.
  void AddWithDetail(RowArtist& artist, const Scene& scene, const Shape2d& shape,
                     const std::string& caption) {
    const std::string image = SaveImage("images", id_, scene);
    const Json row = Row(image, "<image>\nWhat is here?", caption);
    rows_.push_back(row);
    if (artist.Between(0, 1) == 0) {
      rows_two_.push_back(row);
      return;
    }
    const int side = shape.radius * 5 / 2;
    Json two = Row(image, "<image><detail>\nWhich one?", shape.name);
    two["detail"] =
        SaveImage("details", id_, scene, {shape.x - side / 2, shape.y - side / 2, side});
    rows_two_.push_back(std::move(two));
  }

  void AddTwoImages(RowArtist& artist) {
    const Scene first = artist.OneShape();
    const Scene second = artist.OneShape();
    const Json images = {SaveImage("images", id_ + "_first", first),
                         SaveImage("images", id_ + "_second", second)};
    Add(Row(images, "<image><image>\nWhat is here?",
            first.shapes[0].name + ", then " + second.shapes[0].name));
  }

  void AddQuestion(RowArtist& artist) {
    const NamedColour& colour = artist.AnyColour();
    const std::string thing(colour.things[artist.Between(0, 1) == 0 ? 0 : 1]);
    Add(Row(Json(), "What colour is " + thing + "?", std::string(colour.name)));
  }

  void Add(const Json& row) {
    rows_.push_back(row);
    rows_two_.push_back(row);
  }

  Json Row(const Json& image, const std::string& question, const std::string& answer) const {
    Json row = {{"id", id_}};
    if (!image.is_null()) row["image"] = image;
    row["conversations"] = {Json{{"from", "human"}, {"value", question}},
                            Json{{"from", "gpt"}, {"value", answer}}};
    return row;
  }

  /// Draws an image. Returns its path relative to the data set's folder.
  std::string SaveImage(const std::string& folder, const std::string& name, const Scene& scene,
                        const View& view = {}) const {
    std::string path = folder + "/" + name + ".png";
    WritePng((std::filesystem::path(options_.folder) / path).string(),
             Draw(scene, view, options_.size));
    return path;
  }

  /// Writes one row a line, so that a changed row is a changed line.
  void Save(const std::string& name, const Json& rows) const {
    const std::string path = (std::filesystem::path(options_.folder) / name).string();
    std::ofstream stream(path, std::ios::binary);
    const char* before = "[\n";
    for (const Json& row : rows) {
      stream << before << row.dump();
      before = ",\n";
    }
    stream << (rows.empty() ? "[]\n" : "\n]\n");
    stream.close();
    if (!stream) throw FileError(path, "write", errno);
  }

  const SynthOptions& options_;
  bool train_;
  std::string name_;
  std::string id_;
  Json rows_ = Json::array();
  Json rows_two_ = Json::array();
};

void CheckRange(const char* name, int value, int low, int high) {
  if (value >= low && value <= high) return;
  throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(low) + " to " +
                              std::to_string(high) + ", got " + std::to_string(value));
}

}  // namespace

void WriteShapes(const SynthOptions& options) {
  CheckRange("train", options.num_train, 1, 1'000'000);
  CheckRange("held-out", options.num_held_out, 0, 1'000'000);
  CheckRange("size", options.size, 8, 1024);
  std::error_code unknown;
  if (options.folder.empty() || (!std::filesystem::is_empty(options.folder, unknown) && !unknown)) {
    throw std::invalid_argument("out: expected a new or empty folder, got \"" + options.folder +
                                "\"");
  }
  for (const char* folder : {"images", "details"}) {
    MakeFolders((std::filesystem::path(options.folder) / folder).string());
  }
  SetWriter(options, true).Write(options.num_train);
  SetWriter(options, false).Write(options.num_held_out);
}

}  // namespace troupe
