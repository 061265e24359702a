// Sets of many files, their indexes and the order of several sources.
#include "data/row_set.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"
#include "tests/data/write_tar.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// `count` rows without images whose answers begin at number `first`.
std::string Lines(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += "{\"id\": \"r" + std::to_string(i) +
            "\", \"conversations\": [{\"from\": \"human\", \"value\": \"?\"}, {\"from\": \"gpt\", "
            "\"value\": \"" +
            std::string(static_cast<std::size_t>(i % 7), 'x') + "\"}]}\n";
  }
  return text;
}

class SetFolder {
 public:
  SetFolder() {
    terms.cache = folder / "cache";
    terms.small_bytes = 0;  // every index lies in the cache
    terms.format_key = "k";
    for (int i = 0; i < 5; ++i) {
      folder.Write("s" + std::to_string(i) + ".jsonl", Lines(100 * i, 10 + i));
    }
  }
  std::string Pattern() const { return folder / "s{0..4}.jsonl"; }
  RowSet Open(const std::string& source) {
    faults.clear();
    built = 0;
    SetTerms counted = terms;
    counted.progress = [&](const IndexProgress& progress) { built = progress.rows; };
    return RowSet({source}, std::make_shared<const SampleFormat>(PlainFormat()), counted,
                  [&](const DataFault& fault, const FaultPlace& place) {
                    faults.push_back(std::to_string(place.first_row) + " " +
                                     FaultLine(fs::path(place.file).filename(), fault));
                  });
  }
  std::size_t num_indexes() const {
    const fs::directory_iterator files(terms.cache);
    return static_cast<std::size_t>(std::distance(fs::begin(files), fs::end(files)));
  }

  ScratchFolder folder;
  SetTerms terms;
  std::vector<std::string> faults;
  std::int64_t built = 0;  ///< rows that were measured
};

TEST_CASE("the rows of many files are numbered through and read one by one", "[data]") {
  SetFolder set;
  const RowSet rows = set.Open(set.Pattern());
  CHECK(rows.num_rows() == 10 + 11 + 12 + 13 + 14);
  CHECK(rows.SizesOf(0) == std::vector<std::int64_t>{10, 11, 12, 13, 14});
  CHECK(rows.Read(0).row.id == "r0");
  CHECK(rows.Read(9).row.id == "r9");
  CHECK(rows.Read(10).row.id == "r100");
  CHECK(rows.Read(59).row.id == "r413");
  CHECK(rows.Read(59).origin.file == set.folder / "s4.jsonl");
  CHECK(rows.Read(59).row.line == 14);
  CHECK(rows.FactsOf(10 + 6).labels == 2);  // "x", since 106 % 7 == 1, and eos
  CHECK_THROWS_AS(rows.Read(60), std::invalid_argument);
  CHECK_THROWS_AS(rows.FactsOf(-1), std::invalid_argument);
}

TEST_CASE("a file is indexed once, and again when it changes", "[data]") {
  SetFolder set;
  const std::string digest = set.Open(set.Pattern()).digest();
  CHECK(set.built == 60);
  CHECK(set.num_indexes() == 5);
  CHECK(set.Open(set.Pattern()).digest() == digest);
  CHECK(set.built == 0);
  fs::create_hard_link(set.folder / "s2.jsonl", set.folder / "link.jsonl");
  CHECK(set.Open(set.folder / "link.jsonl").num_rows() == 12);
  CHECK(set.built == 0);  // links share an index
  set.folder.Write("s2.jsonl", Lines(7, 3));
  const RowSet changed = set.Open(set.Pattern());
  CHECK(set.built == 3);
  CHECK(changed.num_rows() == 60 - 12 + 3);
  CHECK(changed.digest() != digest);
  set.terms.format_key = "another tokenizer";
  set.Open(set.Pattern());
  CHECK(set.built == 51);
}

TEST_CASE("an index that is damaged or gone is made again, also in use", "[data]") {
  SetFolder set;
  const RowSet rows = set.Open(set.Pattern());
  for (const auto& file : fs::directory_iterator(set.terms.cache)) {
    fs::resize_file(file, fs::file_size(file) - 1);
  }
  CHECK(set.Open(set.Pattern()).num_rows() == 60);
  CHECK(set.built == 60);
  const RowSet unread = set.Open(set.Pattern());
  fs::remove_all(set.terms.cache);
  fs::create_directory(set.terms.cache);
  CHECK(unread.Read(35).row.id == "r302");
}

TEST_CASE("a damaged record of an index is refused, and the others are used", "[data]") {
  SetFolder set;
  set.Open(set.Pattern());
  constexpr std::int64_t kHeader = 256;
  constexpr std::int64_t kRecord = 36;  // there is one encoder
  for (const auto& path : fs::directory_iterator(set.terms.cache)) {
    std::fstream file(path.path(), std::ios::in | std::ios::out);
    file.seekp(kHeader + 3 * kRecord + 4).put('x');  // in the offset of row 3
    std::string record(kRecord, ' ');
    file.seekg(kHeader + 5 * kRecord).read(record.data(), kRecord);
    file.seekp(kHeader + 6 * kRecord)
        .write(record.data(), kRecord);  // a sound record, but of row 5
  }
  const RowSet rows = set.Open(set.Pattern());
  CHECK(set.built == 0);
  for (const std::int64_t row : {3, 6}) {
    const std::string error = set.folder / "s1.jsonl" + ": row " + std::to_string(row) +
                              ": index: its record is damaged; `touch` the file to index it again";
    CHECK_THROWS_WITH(rows.Read(10 + row), error);
    CHECK_THROWS_WITH(rows.FactsOf(10 + row), error);
  }
  CHECK(rows.Read(14).row.id == "r104");
  CHECK(rows.Read(15).row.id == "r105");
}

TEST_CASE("an index with a damaged record is made again if the rows with faults are read",
          "[data]") {
  SetFolder set;
  set.folder.Write("s1.jsonl", "{\"caption\": 7}\n" + Lines(100, 11));
  set.Open(set.folder / "s1.jsonl");
  const std::vector<std::string> faults = set.faults;
  REQUIRE(faults.size() == 1);
  std::fstream(fs::directory_iterator(set.terms.cache)->path(), std::ios::in | std::ios::out)
      .seekp(256 + 4)
      .put('x');
  CHECK(set.Open(set.folder / "s1.jsonl").Read(3).row.id == "r102");
  CHECK(set.built == 12);
  CHECK(set.faults == faults);
}

TEST_CASE("a FIFO in the place of an index is replaced", "[data]") {
  SetFolder set;
  set.Open(set.folder / "s1.jsonl");
  const fs::path index = *fs::directory_iterator(set.terms.cache);
  fs::remove(index);
  REQUIRE(mkfifo(index.c_str(), 0600) == 0);
  CHECK(set.Open(set.folder / "s1.jsonl").num_rows() == 11);
  CHECK(set.built == 11);
  CHECK(fs::is_regular_file(index));
}

TEST_CASE("~USER is refused in data.cache", "[data]") {
  CHECK_THROWS_WITH(IndexCache("~root/x", 1),
                    "~root/x: ~USER is not supported; state a path, or one below ~/ (data.cache)");
}

TEST_CASE("the error of a compressed list asks to unpack it", "[data]") {
  const ScratchFolder folder;
  for (const char* first : {"\x1f\x8b", "\x28\xb5\x2f\xfd",
                            "\xfd"
                            "7zXZ",
                            "BZh9"}) {
    folder.Write("rows.json.gz", first);
    const auto scan = [&] {
      FormatOfFile("rows.json.gz").ScanAfter(folder / "rows.json.gz", {}, [](const RowSpan&) {});
    };
    CHECK_THROWS_WITH(scan(), "expected a JSON list, got a compressed file; unpack it first");
  }
}

TEST_CASE("the oldest indexes make room", "[data]") {
  SetFolder set;
  set.Open(set.Pattern());
  set.terms.cache_bytes = 1;
  set.folder.Write("s0.jsonl", Lines(0, 4));
  CHECK(set.Open(set.Pattern()).num_rows() == 54);
  CHECK(set.num_indexes() == 1);
}

TEST_CASE("jobs that need an index at the same time make it once", "[data]") {
  SetFolder set;
  std::atomic<std::int64_t> built = 0;
  {
    std::vector<std::jthread> jobs;
    for (int i = 0; i < 8; ++i) {
      jobs.emplace_back([&, terms = set.terms]() mutable {
        std::int64_t last = 0;
        terms.progress = [&](const IndexProgress& progress) {
          built += progress.rows - last;
          last = progress.rows;
        };
        const RowSet rows({set.Pattern()}, std::make_shared<const SampleFormat>(PlainFormat()),
                          terms, [](const auto&...) {});
        if (rows.num_rows() != 60) built += 1000;
      });
    }
  }
  CHECK(built == 60);
  CHECK(set.num_indexes() == 5);
}

TEST_CASE("a job that holds an index does not block one that builds it", "[data]") {
  const ScratchFolder folder;
  const IndexCache cache(folder / "cache", 1 << 20);
  const auto build = [](RowIndex& index) {
    index.Append({0, 1, 0});
    index.Flush();
    index.Finish({});
  };
  std::atomic<bool> building = false;
  std::shared_ptr<const RowIndex> first;
  std::jthread other;
  first = cache.Get("k", 1, [&](RowIndex& index) {
    other = std::jthread([&] {
      building = true;
      CHECK(cache.Get("k", 1, build)->num_rows() == 1);
    });
    while (!building) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits for the lock by now
    build(index);
  });
  other.join();
  CHECK(first->num_rows() == 1);
}

TEST_CASE("faults of several files are reported with their places, also from an index", "[data]") {
  SetFolder set;
  set.folder.Write("s1.jsonl", "{}\n" + Lines(0, 2));
  set.folder.Write("s3.jsonl", Lines(0, 2) + "[\n");
  for (int round = 0; round < 2; ++round) {
    const RowSet rows = set.Open(set.Pattern());
    CHECK(rows.sums().bad == 2);
    REQUIRE(set.faults.size() == 2);
    CHECK_THAT(set.faults[0], Catch::StartsWith("10 s1.jsonl:1: row 0: "));
    CHECK_THAT(set.faults[1], Catch::StartsWith("25 s3.jsonl:3: row 2: "));
    CHECK(set.built == (round == 0 ? 10 + 3 + 12 + 3 + 14 : 6));  // lists may have been repaired
  }
}

TEST_CASE("faults of shards are found again in the rows that an index says are bad", "[data]") {
  SetFolder set;
  TarWriter tar;
  tar.Add("a.png", "no png").Add("a.txt", "a").Add("../b.txt", "b").Add("c.txt", "c");
  set.folder.Write("s.tar", tar.Bytes());
  set.terms.depth = FileDepth::kHeader;
  for (int round = 0; round < 2; ++round) {
    const RowSet rows = set.Open(set.folder / "s.tar");
    CHECK(set.built == (round == 0 ? 3 : 0));
    CHECK(rows.sums().bad == 3);
    REQUIRE(set.faults.size() == 3);
    CHECK_THAT(set.faults[0], Catch::StartsWith("0 s.tar: row 0 (id \"a\"): "));
    CHECK_THAT(set.faults[1], Catch::Contains("without \"..\""));
  }
  set.terms.depth = FileDepth::kNone;  // another question, another index
  set.Open(set.folder / "s.tar");
  CHECK(set.built == 3);
  CHECK(set.faults.size() == 2);
}

TEST_CASE("a huge image in a shard is refused by its header, with its place", "[data]") {
  SetFolder set;
  std::string jpeg = BytesOf("tests/data/images/rgb_420.jpg");
  const std::size_t frame = jpeg.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  const std::string size = "\xc3\x50\xc3\x50";  // 50,000 x 50,000
  jpeg.replace(frame + 5, size.size(), size);
  TarWriter tar;
  tar.Add("a.txt", "a")
      .Add("a.jpg", jpeg)
      .Add("b.txt", "b")
      .Add("b.jpg", BytesOf("tests/data/images/rgb_420.jpg"));
  set.folder.Write("s.tar", tar.Bytes());
  set.terms.depth = FileDepth::kHeader;
  const RowSet rows = set.Open(set.folder / "s.tar");
  CHECK(rows.sums().rows == 2);
  CHECK(rows.sums().bad == 1);
  REQUIRE(set.faults.size() == 1);
  CHECK_THAT(set.faults[0],
             Catch::StartsWith("0 s.tar: row 0 (id \"a\"): ") &&
                 Catch::Contains("s.tar: a.jpg: not a usable jpeg: more than 64 million pixels"));
}

TEST_CASE("a file that changes while its rows are in use is not read as if it had not", "[data]") {
  SetFolder set;
  const RowSet rows = set.Open(set.Pattern());
  fs::remove_all(set.terms.cache);
  fs::create_directory(set.terms.cache);
  set.folder.Write("s1.jsonl", Lines(500, 11));
  CHECK_THROWS_WITH(rows.Read(12),
                    set.folder / "s1.jsonl" + ": it has changed since the job started");
  CHECK(rows.Read(0).row.id == "r0");
}

TEST_CASE("a row whose bytes have changed is refused", "[data]") {
  SetFolder set;
  const RowSet rows = set.Open(set.Pattern());
  std::fstream file(set.folder / "s1.jsonl", std::ios::in | std::ios::out);
  file.seekp(3);
  file.put('X');
  file.close();
  CHECK_THROWS_WITH(
      rows.Read(10),
      set.folder / "s1.jsonl" +
          ":1: row 0: its bytes are not those that were indexed: the file has changed in place; "
          "restore it, or `touch` it to index it again");
  CHECK(rows.Read(11).row.id == "r101");
}

TEST_CASE("patterns stand for files", "[data]") {
  const ScratchFolder folder;
  for (const char* name : {"a1.tar", "a2.tar", "a10.tar", "b.tar"}) folder.Write(name, "");
  const auto names = [&](const std::string& pattern) {
    std::vector<std::string> found;
    for (const std::string& path : ExpandPaths(folder / pattern)) {
      found.push_back(fs::path(path).filename());
    }
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names("b.tar") == Names{"b.tar"});
  CHECK(names("{08..11}.tar") == Names{"08.tar", "09.tar", "10.tar", "11.tar"});
  CHECK(names("{b,a1}.{tar,x}") == Names{"b.tar", "b.x", "a1.tar", "a1.x"});
  CHECK(names("a*.tar") == Names{"a1.tar", "a10.tar", "a2.tar"});
  CHECK(names("{b,a?}.tar") == Names{"b.tar", "a1.tar", "a2.tar"});
  CHECK(ExpandPaths("{0..999}/{000..999}.tar").size() == 1'000'000);
  for (const char* bad :
       {"c*.tar", "{a", "{a,{b}}", "{9..1}", "{0..9999999}", "{0..999}{0..999}{0..9}"}) {
    CHECK_THROWS_AS(names(bad), std::runtime_error);
  }
}

}  // namespace
}  // namespace troupe
