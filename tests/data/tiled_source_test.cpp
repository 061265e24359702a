// What a source brings of images that are cut into tiles.
#include <filesystem>
#include <set>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "data/row_source.hpp"
#include "tests/configs/base.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRowsOfSquare = 16;  // of the encoder of kBase

/// Three rows with an image of another size each, and one without.
class TiledSet {
 public:
  TiledSet() {
    for (const char* const name : {"rgb_53x7.png", "exif6.jpg", "rgb_23x56.png"}) {
      fs::copy(std::string("tests/oracle/images/") + name, folder_ / name);
    }
    folder_.Write("rows.jsonl",
                  R"({"image": "rgb_53x7.png", "caption": "a"}
{"image": "exif6.jpg", "caption": "bc"}
{"image": "rgb_23x56.png", "caption": "d"}
{"conversations": [{"from": "human", "value": "no image"}, {"from": "gpt", "value": "none"}]}
)");
  }

  Config Load() const {
    return LoadConfig(kBase, {"data.image_fit=anyres", "data.train=" + folder_ / "rows.jsonl",
                              "modules.language.context=256", "modules.vision.image_size=16",
                              "modules.vision.patch_size=4", "schedule.micro_batch_size=4",
                              "schedule.microbatches=1"})
        .config;
  }
  const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
};

Round FirstRound() { return {.number = 0, .train = true, .step = 0, .microbatches = 1}; }

TEST_CASE("rows of tiles and newlines fill the places of their image once each", "[data]") {
  const TiledSet set;
  RowSource source(set.Load());
  const Inputs whole = source.LoadWhole(FirstRound());
  const FieldItems& items = whole.fields.at("vision");
  const std::multiset<std::int64_t> lengths(items.lengths.begin(), items.lengths.end());
  CHECK(lengths == std::multiset<std::int64_t>{3, 4, 4});
  CHECK(items.values.shape() == Shape{11, 3, 16, 16});
  const Buffer& positions = whole.positions.at("vision");
  CHECK(positions.num_elements() == 11 * kRowsOfSquare);
  CHECK(whole.expected.at("vision").num_rows() == 11 * kRowsOfSquare);
  std::multiset<std::int64_t> filled;
  for (const Buffer* const places : {&positions, &whole.newlines.at("vision")}) {
    for (std::int64_t i = 0; i < places->num_elements(); ++i) {
      if (places->as<std::int64_t>()[i] >= 0) filled.insert(places->as<std::int64_t>()[i]);
    }
  }
  std::multiset<std::int64_t> placeholders;
  for (std::int64_t i = 0; i < whole.tokens.num_elements(); ++i) {
    if (whole.tokens.as<std::int64_t>()[i] == 259) placeholders.insert(i);
  }
  CHECK(filled == placeholders);
  CHECK(std::ssize(filled) < 11 * kRowsOfSquare);  // some rows show only the border
  std::int64_t squares = 0;
  for (const StepShape& shape : source.ShapesOf(FirstRound()))
    squares += shape.lengths.at("vision");
  CHECK(squares == 11);
}

TEST_CASE("an image that is damaged or changes its size leaves its place to zeros", "[data]") {
  const TiledSet set;
  const bool skip = GENERATE(true, false);
  RowSource source(set.Load(), FileDepth::kHeader,
                   FaultPolicy{.on_error = skip ? OnError::kSkip : OnError::kStop});
  const Inputs before = source.LoadWhole(FirstRound());
  const std::string wide = set.folder() / "rgb_53x7.png";
  fs::resize_file(wide, fs::file_size(wide) / 2);
  fs::copy_file(set.folder() / "exif6.jpg", set.folder() / "rgb_23x56.png",
                fs::copy_options::overwrite_existing);
  fs::remove(set.folder() / "exif6.jpg");
  if (!skip) {
    CHECK_THROWS_AS(source.LoadWhole(FirstRound()), FaultError);
    return;
  }
  const Inputs after = source.LoadWhole(FirstRound());
  CHECK(after.replaced.size() == 3);
  CHECK(after.fields.at("vision").lengths == before.fields.at("vision").lengths);
  const Buffer& values = after.fields.at("vision").values;
  CHECK(values.shape() == before.fields.at("vision").values.shape());
  bool zeros = true;
  for (std::int64_t i = 0; i < values.num_elements(); ++i) {
    zeros = zeros && values.as<float>()[i] == 0.0F;
  }
  CHECK(zeros);
  std::set<std::string> lines;
  for (const ReplacedItem& item : after.replaced) lines.insert(item.line);
  CHECK(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("its size has changed since it was counted") != line.npos;
  }));
}

TEST_CASE("a row whose file is cut short is skipped if its size is not known", "[data]") {
  const TiledSet set;
  const std::string wide = set.folder() / "rgb_53x7.png";
  fs::resize_file(wide, fs::file_size(wide) / 2);
  RowSource source(set.Load(), FileDepth::kHeader, FaultPolicy{.on_error = OnError::kSkip});
  CHECK(source.skipped_lines().size() == 2);
  CHECK(source.LoadWhole(FirstRound()).replaced.empty());
}

}  // namespace
}  // namespace troupe
