// An index whose job was killed: another one goes on with the part that was kept.
#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "data/measured_file.hpp"
#include "data/rows/index_cache.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/data/write_tar.hpp"

namespace troupe {
namespace {

constexpr int kRows = 200;

std::string Answer(int row) { return std::string(static_cast<std::size_t>(1 + row % 7), 'x'); }

std::string JsonRow(int row) {
  return "{\"id\": \"r" + std::to_string(row) +
         "\", \"conversations\": [{\"from\": \"human\", \"value\": \"?\"}, {\"from\": \"" +
         (row == 10 ? "gbt" : "gpt") + "\", \"value\": \"" + Answer(row) + "\"}]}";
}

/// The same rows in each format. Row 10 has a role that does not exist.
std::string WriteRows(const ScratchFolder& folder, const std::string& ending) {
  std::string text;
  TarWriter tar;
  for (int row = 0; row < kRows; ++row) {
    const std::string json = JsonRow(row);
    if (ending == "json") text += (row == 0 ? "[ " : " ,\n ") + json;
    if (ending == "jsonl") text += json + (row % 5 == 0 ? "\n\n" : "\n");
    tar.Add("r" + std::to_string(row) + ".json", json);
  }
  if (ending == "json") text += " ]";
  return folder.Write("rows." + ending, ending == "tar" ? tar.Bytes() : text);
}

using Spans = std::vector<RowSpan>;

bool AreEqual(const RowSpan& a, const RowSpan& b) {
  return a.offset == b.offset && a.size == b.size && a.line == b.line;
}

Spans SpansAfter(const std::string& file, const std::optional<RowSpan>& last) {
  Spans spans;
  FormatOfFile(file).ScanAfter(file, last, [&](const RowSpan& span) { spans.push_back(span); });
  return spans;
}

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

/// Measures a file into the index at a path, as jobs do one after the other.
class Jobs {
 public:
  explicit Jobs(const ScratchFolder& folder) : path_(folder / "index") {}

  /// Returns what was measured. The job is killed after `most` rows.
  MeasuredFile Run(const std::string& file, std::int64_t most = kRows) {
    faults.clear();
    measured.clear();
    std::int64_t rows = 0;
    const auto count = [&](std::int64_t more) {
      rows += more;
      measured.push_back(more);
      if (rows > most) throw Killed();
    };
    const SampleFormat format = PlainFormat();
    RowIndex index(open(path_.c_str(), O_RDWR | O_CREAT, 0644), format.fields.size());
    const MeasuredFile result =
        MeasureFile({file}, format, {.measured = count, .keep_every = std::chrono::seconds(0)},
                    index, [&](const DataFault& fault) { faults.push_back(fault.row); });
    digest = index.facts_digest();
    return result;
  }
  const std::string& path() const { return path_; }

  std::vector<std::int64_t> faults;
  std::vector<std::int64_t> measured;  ///< rows that are done, in steps
  std::string digest;

 private:
  std::string path_;
};

TEST_CASE("a scan goes on after any row", "[data]") {
  const ScratchFolder folder;
  for (const char* const ending : {"json", "jsonl", "tar"}) {
    const std::string file = WriteRows(folder, ending);
    const Spans all = SpansAfter(file, std::nullopt);
    INFO(ending);
    REQUIRE(all.size() == kRows);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Spans rest = SpansAfter(file, all[i]);
      const Spans expected(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end());
      CHECK(std::ranges::equal(rest, expected, AreEqual));
    }
  }
}

TEST_CASE("a scan of a list goes on after objects alone, and finds what is wrong behind them",
          "[data]") {
  const ScratchFolder folder;
  const std::string mixed = folder.Write("mixed.json", R"([{"a": 1}, 2, "{}", {"b": [3]}, null])");
  const Spans all = SpansAfter(mixed, std::nullopt);
  REQUIRE(all.size() == 5);
  for (const std::size_t row : {std::size_t{0}, std::size_t{3}}) {
    const Spans rest = SpansAfter(mixed, all[row]);
    CHECK(std::ranges::equal(rest, Spans(all.begin() + std::ptrdiff_t(row) + 1, all.end()),
                             AreEqual));
  }
  for (const std::size_t row : {1, 2, 4}) CHECK_THROWS(SpansAfter(mixed, all[row]));
  const std::string broken = folder.Write("broken.json", R"([{"a": 1},])");
  CHECK_THROWS(SpansAfter(broken, RowSpan{1, 8, 0}));
}

TEST_CASE("a job goes on with the index of one that was killed", "[data]") {
  const ScratchFolder folder;
  for (const std::string ending : {"json", "jsonl", "tar"}) {
    INFO(ending);
    const std::string file = WriteRows(folder, ending);
    Jobs whole(folder);
    const MeasuredFile expected = whole.Run(file);
    REQUIRE(whole.faults == std::vector<std::int64_t>{10});
    std::filesystem::remove(whole.path());

    Jobs jobs(folder);
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    CHECK_THROWS_AS(jobs.Run(file, 150), Killed);
    CHECK(jobs.measured.front() == 96);  // the block after it was not kept
    const MeasuredFile result = jobs.Run(file);
    CHECK(jobs.measured.front() == 128);
    CHECK(jobs.faults == whole.faults);
    CHECK(jobs.digest == whole.digest);
    CHECK(result.sums.tokens == expected.sums.tokens);
    CHECK(result.sums.bad == 1);
    CHECK(result.sums.rows == kRows);
    CHECK(result.whole);
    std::filesystem::remove(jobs.path());
  }
}

TEST_CASE("a part that cannot be trusted is measured again", "[data]") {
  const ScratchFolder folder;
  const std::string file = WriteRows(folder, "jsonl");
  Jobs jobs(folder);
  const auto expect_all = [&] {
    jobs.Run(file);
    CHECK(jobs.measured.front() == 32);
    std::filesystem::remove(jobs.path());
  };
  SECTION("a row that was bad is good") {
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    // As with a repaired image, the rows lie where they were.
    std::string old;
    std::getline(std::ifstream(file), old, '\0');
    old.replace(old.find("gbt"), 3, "gpt");
    std::ofstream(file, std::ios::trunc) << old;
    expect_all();
    CHECK(jobs.faults.empty());
  }
  SECTION("its header is damaged") {
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    std::fstream(jobs.path(), std::ios::in | std::ios::out).seekp(3) << 'x';
    expect_all();
  }
  SECTION("it is cut short") {
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    std::filesystem::resize_file(jobs.path(), 1000);
    expect_all();
  }
  SECTION("it was made for another number of encoders") {
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    RowIndex other(open(jobs.path().c_str(), O_RDWR), 7);
    CHECK(other.num_rows() == 0);
  }
}

TEST_CASE("the part of a killed job stays in the cache until it must make room", "[data]") {
  const ScratchFolder folder;
  const std::string part = folder / "cache/old.rows.building";
  const auto fill = [](RowIndex& index) {
    for (int row = 0; row < 100; ++row) index.Append({row, 1, 0});
    index.Finish({});
  };
  {
    const IndexCache cache(folder / "cache", 1 << 20);
    std::ofstream(part) << std::string(2000, 'p');
    cache.Get("a", 1, fill);
    CHECK(std::filesystem::exists(part));
  }
  const IndexCache small(folder / "cache", 1000);
  small.Get("b", 1, fill);
  CHECK_FALSE(std::filesystem::exists(part));
}

}  // namespace
}  // namespace troupe
