// Rows of Parquet files, written by tests/data/parquet/make.py.
#include <iostream>
#include <numeric>

#include <catch2/catch.hpp>

#include "tests/data/read_llava.hpp"

namespace troupe {
namespace {

using Catch::Contains;

const std::vector<RowField> kOneImage = {{{"image", "<image>"}}};
const std::vector<RowField> kManyImages = {{{"images", "<image>"}}};

std::string FileOf(const std::string& name) { return "tests/data/parquet/" + name; }

/// Returns whether this build reads Parquet. If not, prints that the test is left out, and checks the error.
bool Reads() {
  std::string refusal;
  try {
    ParquetTable().Scan(FileOf("images.parquet"), [](const RowSpan&) {});
  } catch (const std::runtime_error& error) {
    refusal = error.what();
  }
  if (refusal.empty()) return true;
  CHECK_THAT(refusal, Contains("this build reads no Parquet files") && Contains("TROUPE_ARROW"));
  std::cout << "left out: a test of Parquet files, since " << refusal << '\n';
  return false;
}

std::string ItemBytes(const LlavaRow& row, const ReadRows& set, const std::string& name) {
  const ItemFile file = row.ItemOf(set, name);
  REQUIRE(file.bytes.has_value());
  return {file.bytes->begin(), file.bytes->end()};
}

}  // namespace

TEST_CASE("a Parquet table of images and conversations", "[data][parquet]") {
  if (!Reads()) return;
  const ReadRows set = ReadLlava(FileOf("images.parquet"), kOneImage);
  CHECK(set.faults.empty());
  REQUIRE(set.rows.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const LlavaRow& row = set.rows[i];
    CHECK(row.id == "row" + std::to_string(i));
    REQUIRE(row.turns.size() == 2);
    CHECK(row.turns[1].text == "answer " + std::to_string(i));
    if (i == 3) {
      CHECK(row.files[0].empty());
      continue;
    }
    REQUIRE(row.files[0].size() == 1);
    CHECK(ItemBytes(row, set, row.files[0][0]) == "image " + std::to_string(i));
    CHECK(row.ItemOf(set, row.files[0][0]).name == FileOf("images.parquet") + ": image.0");
  }
}

TEST_CASE("rows of a Parquet table are read in any order, with the sum of their bytes",
          "[data][parquet]") {
  if (!Reads()) return;
  const auto index = std::make_shared<RowIndex>(1);
  ParquetTable().Scan(FileOf("images.parquet"), [&](const RowSpan& span) { index->Append(span); });
  index->Flush();
  const RowFile first({FileOf("images.parquet")}, index);
  for (std::int64_t row = 0; row < 5; ++row) {
    RowFacts facts = index->Get(row);
    facts.lengths = {0};
    first.ReadFirst(row, kOneImage, facts);
    if (row == 2) facts.sum += 1;
    index->Set(row, facts);
  }
  const RowFile file({FileOf("images.parquet")}, index);
  for (const std::int64_t row : {4, 0, 3, 1, 4, 0}) {
    CHECK(file.Read(row, kOneImage).id == "row" + std::to_string(row));
  }
  CHECK_THROWS_WITH(file.Read(2, kOneImage), Contains("its bytes are not those that were indexed"));
}

TEST_CASE("a scan of a Parquet table goes on after any row", "[data][parquet]") {
  if (!Reads()) return;
  for (std::int64_t last = 0; last < 5; ++last) {
    std::vector<std::int64_t> rows;
    ParquetTable().ScanAfter(FileOf("images.parquet"), RowSpan{last, 0, 0},
                             [&](const RowSpan& span) { rows.push_back(span.offset); });
    std::vector<std::int64_t> expected(static_cast<std::size_t>(4 - last));
    std::iota(expected.begin(), expected.end(), last + 1);
    CHECK(rows == expected);
  }
}

TEST_CASE("lists of images, numbers as ids, dictionaries and empty columns", "[data][parquet]") {
  if (!Reads()) return;
  const ReadRows set = ReadLlava(FileOf("lists.parquet"), kManyImages);
  CHECK(set.faults.empty());
  REQUIRE(set.rows.size() == 2);
  CHECK(set.rows[0].id == "7");
  REQUIRE(set.rows[0].files[0].size() == 2);
  CHECK(ItemBytes(set.rows[0], set, set.rows[0].files[0][0]) == "a");
  CHECK(ItemBytes(set.rows[0], set, set.rows[0].files[0][1]) == "b");
  CHECK(ItemBytes(set.rows[1], set, set.rows[1].files[0][0]) == "c");
}

TEST_CASE("messages of parts in a Parquet table", "[data][parquet]") {
  if (!Reads()) return;
  const ReadRows set = ReadLlava(FileOf("messages.parquet"), kOneImage);
  CHECK(set.faults.empty());
  REQUIRE(set.rows.size() == 1);
  CHECK(set.rows[0].turns[0].text == "what is <image>");
  CHECK(ItemBytes(set.rows[0], set, set.rows[0].files[0][0]) == "dog");
}

TEST_CASE("bad rows of a Parquet table do not hide good ones", "[data][parquet]") {
  if (!Reads()) return;
  const ReadRows set = ReadLlava(FileOf("bad.parquet"), kOneImage);
  REQUIRE(set.faults.size() == 2);
  CHECK(set.faults[0].row == 0);
  CHECK(set.faults[0].reason == "column image: expected the bytes of a file, got only its path");
  CHECK(set.faults[1].row == 1);
  CHECK(set.faults[1].id == "empty");
  CHECK(ItemBytes(set.rows[2], set, set.rows[2].files[0][0]) == "y");
}

TEST_CASE("Parquet files that are cut short or take too much memory are refused",
          "[data][parquet]") {
  if (!Reads()) return;
  const auto scan = [](const std::string& name) {
    ParquetTable().Scan(FileOf(name), [](const RowSpan&) {});
  };
  CHECK_THROWS_WITH(scan("cut.parquet"), Contains("not a usable Parquet file"));
  CHECK_THROWS_WITH(scan("many_rows.parquet"), Contains("more rows than it has bytes"));
  // One row is enough: each of them would decode the group.
  const RowFile large({FileOf("large_group.parquet")});
  RowFacts facts{.span = {5, 0, 0}, .lengths = {}};
  for (int i = 0; i < 100; ++i) {  // it is decoded once
    CHECK_THROWS_WITH(large.ReadFirst(5, kOneImage, facts), Contains("row group 0: "));
  }
}

}  // namespace troupe
