// An index whose job was killed: another one goes on with the part that was kept.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
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
constexpr int kMany = 6000;

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
  MeasuredFile Run(const std::string& file, std::int64_t most = kMany) {
    faults.clear();
    measured.clear();
    std::atomic<std::int64_t> rows = 0;
    std::mutex mutex;
    const auto count = [&](std::int64_t more) {
      const std::lock_guard lock(mutex);
      measured.push_back(more);
      if ((rows += more) > most) throw Killed();
    };
    const MeasureTerms terms{
        .threads = threads, .measured = count, .keep_every = std::chrono::seconds(0)};
    RowIndex index(Open(), PlainFormat().fields.size());
    const MeasuredFile result =
        MeasureFile({file}, PlainFormat(), terms, index, [&](const DataFault& fault) {
          faults.push_back(fault.row);
          reasons.push_back(fault.reason);
        });
    digest = index.facts_digest();
    return result;
  }
  /// A job finds some rows and is killed.
  void Scan(const std::string& file, std::int64_t most) {
    RowIndex index(Open(), PlainFormat().fields.size());
    try {
      FormatOfFile(file).Scan(file, [&](const RowSpan& span) {
        if (index.num_rows() == most) throw Killed();
        index.Append(span);
      });
    } catch (const std::runtime_error&) {  // killed, or at the fault of the file
    }
    index.Keep({.sums = {.rows = index.num_rows()}});
  }
  int Open() const { return open(path_.c_str(), O_RDWR | O_CREAT, 0644); }
  const std::string& path() const { return path_; }

  std::vector<std::int64_t> faults;
  std::vector<std::string> reasons;    ///< of faults, of all jobs
  std::vector<std::int64_t> measured;  ///< rows that are done, in steps
  int threads = 1;
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

TEST_CASE("a scan of a list resumes only after an object, and still finds later faults", "[data]") {
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

TEST_CASE("a job with several threads goes on with the index of one that was killed", "[data]") {
  const ScratchFolder folder;
  std::string text;
  for (int row = 0; row < kMany; ++row) text += JsonRow(row) + "\n";
  const std::string file = folder.Write("many.jsonl", text);
  Jobs whole(folder);
  whole.Run(file);
  std::filesystem::remove(whole.path());
  Jobs jobs(folder);
  jobs.threads = 4;
  jobs.Scan(file, 5000);
  CHECK_THROWS_AS(jobs.Run(file, 1000), Killed);
  CHECK_THROWS_AS(jobs.Run(file, 4000), Killed);
  jobs.Run(file);
  CHECK(jobs.measured.front() > 32);
  CHECK(jobs.digest == whole.digest);
  CHECK(jobs.faults == whole.faults);
}

TEST_CASE("a scan that was killed goes on, and says the same of a broken file", "[data]") {
  const ScratchFolder folder;
  for (const std::string ending : {"json", "jsonl", "tar"}) {
    const std::string file = WriteRows(folder, ending);
    Jobs whole(folder);
    whole.Run(file);
    for (const std::int64_t found : {1, 100, kRows}) {
      std::filesystem::remove(whole.path());
      Jobs jobs(folder);
      jobs.Scan(file, found);
      jobs.Run(file);
      CHECK(jobs.digest == whole.digest);
    }
    std::filesystem::remove(whole.path());
  }
  const std::string broken =
      folder.Write("broken.json", "[" + JsonRow(0) + ",\n" + JsonRow(1) + ", x]");
  Jobs whole(folder);
  CHECK_FALSE(whole.Run(broken).whole);
  std::filesystem::remove(whole.path());
  Jobs jobs(folder);
  jobs.Scan(broken, 2);
  CHECK_FALSE(jobs.Run(broken).whole);
  CHECK(jobs.reasons == whole.reasons);
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
    SECTION("and the job that finds it is killed, too") {
      CHECK_THROWS_AS(jobs.Run(file, 16), Killed);
    }
    expect_all();
    CHECK(jobs.faults.empty());
  }
  SECTION("its header is damaged") {
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    std::fstream(jobs.path(), std::ios::in | std::ios::out).seekp(3) << 'x';
    expect_all();
  }
  SECTION("its records are damaged") {
    CHECK_THROWS_AS(jobs.Run(file, 100), Killed);
    const std::int64_t place = GENERATE(256, 256 + 36 * 50 + 20, 256 + 36 * 190);
    std::fstream index(jobs.path(), std::ios::in | std::ios::out);
    char byte = 0;
    index.seekg(place).get(byte);
    index.seekp(place).put(static_cast<char>(byte ^ 4));
    index.close();
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

/// Runs `job` in a process that is killed at its end.
void InKilledProcess(const std::function<void()>& job) {
  const pid_t child = fork();
  if (child == 0) {
    job();
    raise(SIGKILL);
  }
  REQUIRE(child > 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a cache hands out the index of a job that was killed", "[data]") {
  const ScratchFolder folder;
  const IndexCache cache(folder / "cache", 1 << 20);
  InKilledProcess([&] {
    cache.Get("part", 1, [](RowIndex& index) {
      for (int row = 0; row < 100; ++row) index.Append({row, 1, 0});
      index.Keep({.sums = {.rows = 100}, .measured = 7, .has_all_places = true});
      raise(SIGKILL);
    });
  });
  InKilledProcess([&] {
    cache.Get("whole", 1, [](RowIndex& index) {
      for (int row = 0; row < 100; ++row) index.Append({row, 1, 0});
      index.Finish({.tokens = 9});
      raise(SIGKILL);
    });
  });
  const auto part = cache.Get("part", 1, [](RowIndex& index) {
    CHECK(index.num_rows() == 100);
    CHECK(index.part().measured == 7);
    CHECK(index.part().has_all_places);
    index.Finish({});
  });
  CHECK(part->Get(99).span.offset == 99);
  const std::string damaged = folder / "cache/damaged.rows.building";
  std::filesystem::copy(folder / "cache/whole.rows.building", damaged);
  std::fstream(damaged, std::ios::in | std::ios::out).seekp(1000).put('x');
  cache.Get("damaged", 1, [](RowIndex& index) {
    CHECK(index.num_rows() == 0);
    index.Finish({});
  });
  cache.Get("whole", 1, [](RowIndex& index) {
    CHECK(index.part().measured == 100);
    CHECK(index.part().sums.tokens == 9);
    index.Finish({});
  });
}

TEST_CASE("a cache removes no index that another job is building", "[data]") {
  const ScratchFolder folder;
  const IndexCache cache(folder / "cache", 1000);
  const auto fill = [](RowIndex& index) {
    for (int row = 0; row < 100; ++row) index.Append({row, 1, 0});
    index.Finish({});
  };
  cache.Get("a", 1, [&](RowIndex& index) {
    fill(index);
    cache.Get("b", 1, fill);
    CHECK(std::filesystem::exists(folder / "cache/a.rows.building"));
    CHECK(cache.Find("b", 1));  // the newest
  });
  CHECK(cache.Find("a", 1));
  CHECK_FALSE(cache.Find("b", 1));
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
