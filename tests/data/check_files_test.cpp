#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/fault_tally.hpp"
#include "data/measured_file.hpp"
#include "data/sample.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

constexpr int kRows = 500;

/// Each row names one image: every seventh is missing, the others are of two formats.
std::string ManyRows(const ScratchFolder& folder) {
  std::filesystem::copy("tests/data/images/rgb8_interlaced.png", folder / "small.png");
  std::filesystem::copy("tests/data/images/rgb_420.jpg", folder / "large.jpg");
  std::string text;
  for (int i = 0; i < kRows; ++i) {
    const char* const file = i % 7 == 0 ? "none.png" : (i % 2 == 0 ? "small.png" : "large.jpg");
    text += (i == 0 ? "[" : ",") + std::string("{\"id\": \"r") + std::to_string(i) +
            "\", \"image\": \"" + file + "\", \"caption\": \"a\"}";
  }
  return folder.Write("set.json", text + "]");
}

TEST_CASE("faults of images are reported in the order of the rows, from several threads",
          "[data]") {
  const ScratchFolder folder;
  const std::string list = ManyRows(folder);
  const SampleFormat plain = PlainFormat();
  for (const FileDepth depth : {FileDepth::kHeader, FileDepth::kDecode}) {
    std::vector<std::int64_t> rows;
    RowIndex index(plain.fields.size());
    const MeasuredFile measured = MeasureFile({list}, plain, {.depth = depth, .threads = 4}, index,
                                              [&](const DataFault& fault) {
                                                CHECK(fault.kind == FaultKind::kItem);
                                                CHECK(fault.id == "r" + std::to_string(fault.row));
                                                rows.push_back(fault.row);
                                              });
    REQUIRE(rows.size() == 72);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i] == 7 * static_cast<std::int64_t>(i));
    }
    CHECK(measured.sums.rows == kRows);
    CHECK(measured.sums.bad == 72);
    CHECK(measured.files.num_files == kRows);
    const auto& formats = measured.files.formats;
    const FormatCount& png = formats[static_cast<std::size_t>(ImageFormat::kPng)];
    const FormatCount& jpeg = formats[static_cast<std::size_t>(ImageFormat::kJpeg)];
    CHECK(png.count + jpeg.count == kRows - 72);
    CHECK(png.largest->width == 11);
    CHECK(jpeg.smallest->height == 17);
  }
}

TEST_CASE("an image of a file of lines is named with its line", "[data]") {
  const ScratchFolder folder;
  const std::string list =
      folder.Write("set.jsonl", "\n{\"id\": \"a\", \"image\": \"none.png\", \"caption\": \"a\"}\n");
  std::vector<std::string> lines;
  RowIndex index(1);
  MeasureFile({list}, PlainFormat(), {.depth = FileDepth::kHeader}, index,
              [&](const DataFault& fault) { lines.push_back(FaultLine(list, fault)); });
  CHECK(lines == std::vector<std::string>{list + ":2: row 0 (id \"a\"): " + (folder / "none.png") +
                                          ": no such file"});
}

TEST_CASE("a skipped row is replaced by the next one that is used", "[data]") {
  const SkippedRows skipped({2, 3, 9}, {{0, 10}});
  CHECK(skipped.Substitute(1) == 1);
  CHECK(skipped.Substitute(2) == 4);
  CHECK(skipped.Substitute(3) == 4);
  CHECK(skipped.Substitute(9) == 0);
  CHECK(skipped.Text() == "2, 3, 9");
  CHECK(SkippedRows({0, 1, 3}, {{0, 4}}).Substitute(3) == 2);
  CHECK_THROWS_AS(SkippedRows({0, 1}, {{0, 2}}), std::invalid_argument);
  CHECK_THROWS_AS(SkippedRows({2}, {{0, 2}}), std::invalid_argument);
  const SkippedRows two({3, 4, 9}, {{0, 4}, {4, 10}});  // sources of four and of six rows
  CHECK(two.Substitute(3) == 0);
  CHECK(two.Substitute(4) == 5);
  CHECK(two.Substitute(9) == 5);
  CHECK_THROWS_AS(SkippedRows({4, 5}, {{0, 4}, {4, 6}}), std::invalid_argument);
}

TEST_CASE("the first faults are shown and the others counted", "[data]") {
  FaultTally tally({});
  CHECK_NOTHROW(tally.Require());
  for (int i = 0; i < 1000; ++i) tally.Add("train", "f.json", 10, {FaultKind::kRow, i, "", "bad"});
  try {
    tally.Require();
    FAIL("the job may start");
  } catch (const DataError& error) {
    REQUIRE(error.lines().size() == 6);
    CHECK(error.lines()[4] == "f.json: row 4: bad");
    CHECK(error.lines()[5] == "and 995 more faults: `troupe data check` lists all");
  }
  CHECK(std::ssize(tally.RowsOf("train")) == 101);
}

TEST_CASE("a list that could not be read to its end is never skipped", "[data]") {
  FaultTally tally({.on_error = OnError::kSkip});
  tally.Add("train", "f.json", 0, {FaultKind::kRow, 3, "", "bad"});
  CHECK_NOTHROW(tally.Require());
  tally.Add("train", "f.json", 0, {FaultKind::kFile, 4, "", "parse error"});
  CHECK_THROWS_WITH(tally.Require(), "f.json: row 3: bad\nf.json: parse error");
}

}  // namespace
}  // namespace troupe
