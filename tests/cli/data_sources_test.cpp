// Runs on shards, and the verbs that look at them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"
#include "tests/data/write_tar.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// More shards than have their indexes in memory: links to two of them, four rows each.
class ShardRuns : public RunFolder {
 public:
  ShardRuns() {
    const std::string image = BytesOf("data/shapes/images/train_0000.png");
    for (int shard = 0; shard < kShards; ++shard) {
      const std::string path = PathOf(shard);
      if (shard >= 2) {
        fs::create_hard_link(PathOf(shard % 2), path);
        continue;
      }
      TarWriter tar;
      for (int row = 0; row < 4; ++row) {
        const std::string key = std::to_string(10 * shard + row);
        tar.Add(key + ".png", image).Add(key + ".txt", "shape " + key);
      }
      WriteFile(path, tar.Bytes());
    }
  }

  std::vector<std::string> Words(const std::vector<std::string>& verb,
                                 const std::vector<std::string>& settings) const {
    std::vector<std::string> words = Arguments("", "configs/shapes.toml");
    words.erase(words.begin());
    words.insert(words.begin(), verb.begin(), verb.end());
    const std::string sources = "data.sources=[{ path = '" + *this / "s{00..69}.tar" +
                                "', weight = 3 }, { path = '" + *this / "train.json" +
                                "', weight = 1 }]";
    for (const std::string& setting :
         {std::string("data.train=''"), sources, "data.cache=" + *this / "cache"}) {
      words.insert(words.end(), {"--set", setting});
    }
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    return words;
  }
  Outcome Run(const std::vector<std::string>& verb,
              const std::vector<std::string>& settings = {}) const {
    return RunTroupe(Words(verb, settings));
  }
  std::vector<std::string> Indexes() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(*this / "cache")) {
      names.push_back(file.path().filename());
    }
    return names;
  }

 private:
  static constexpr int kShards = 70;
  std::string PathOf(int shard) const {
    const std::string number = std::to_string(shard);
    return *this / "s" + (shard < 10 ? "0" : "") + number + ".tar";
  }
};

/// "step 3/4  loss 5.1390" of each step.
std::vector<std::string> LossesIn(const std::string& out) {
  static const std::regex step("step [0-9]+/[0-9]+  loss [0-9.]+");
  std::vector<std::string> losses;
  for (std::sregex_iterator i(out.begin(), out.end(), step); i != std::sregex_iterator(); ++i) {
    losses.push_back(i->str());
  }
  return losses;
}

TEST_CASE("a run on shards indexes them once and resumes at the next sample", "[cli]") {
  const ShardRuns runs;
  const Outcome whole = runs.Run({"train"}, {"run.steps=4"});
  INFO(whole.out << whole.err);
  REQUIRE(whole.exit_code == 0);
  CHECK_THAT(whole.out, Contains("281 rows"));
  CHECK(runs.Indexes().size() == 3);  // two archives and the list
  const Outcome index = runs.Run({"data", "index"});
  CHECK_THAT(index.out, Contains("71 files, 281 rows, 0 bad, ") && Contains("indexes in "));
  CHECK(runs.Indexes().size() == 3);
}

TEST_CASE("the number of workers and what is prepared ahead change no loss", "[cli]") {
  const ShardRuns runs;
  std::vector<std::string> first;
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"data.workers=1", "data.prefetch=1", "data.prefetch_mib=1"},
        {"data.workers=3"},
        {"data.workers=8", "data.prefetch=16"}}) {
    std::vector<std::string> settings = how;
    settings.emplace_back("run.steps=4");
    const Outcome outcome = runs.Run({"train"}, settings);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    std::vector<std::string> losses;
    for (const std::string& line : LinesOf(BytesOf(runs.Runs().back() + "/metrics.jsonl"))) {
      const auto json = nlohmann::json::parse(line);
      losses.push_back(json["loss"].dump() + " " + json["valid_tokens"].dump());
    }
    CHECK(losses.size() >= 4);
    if (first.empty()) first = losses;
    CHECK(losses == first);
  }
}

TEST_CASE("data check finds a file that changed without its size and time", "[cli]") {
  const ShardRuns runs;
  REQUIRE(runs.Run({"data", "index"}).exit_code == 0);
  CHECK(runs.Run({"data", "check"}).exit_code == 0);
  const std::string shard = runs / "s01.tar";
  const auto time = fs::last_write_time(shard);
  std::string bytes = BytesOf(shard);
  bytes.replace(bytes.find("shape 12"), 8, "shape 77");
  WriteFile(shard, bytes);
  fs::last_write_time(shard, time);
  const Outcome check = runs.Run({"data", "check"});
  INFO(check.out << check.err);
  CHECK(check.exit_code == 1);
  CHECK_THAT(check.out,
             Contains("s01.tar: its rows are not those of its index " + runs / "cache/"));
}

TEST_CASE("a run on shards goes on after a checkpoint, unless the order has changed", "[cli]") {
  const ShardRuns runs;
  const Outcome whole =
      runs.Run({"train"}, {"run.steps=4", "checkpoint.every=2", "checkpoint.keep=9"});
  INFO(whole.out << whole.err);
  REQUIRE(whole.exit_code == 0);
  const std::string run = runs.Runs().at(0);
  std::vector<std::string> words = runs.Words({"train"}, {"run.steps=4"});
  words.insert(words.end(), {"--from", run, "--from-step", "2"});
  const Outcome again = RunTroupe(words);
  INFO(again.out << again.err);
  REQUIRE(again.exit_code == 0);
  const auto before = LossesIn(whole.out);
  const auto after = LossesIn(again.out);
  REQUIRE(before.size() == 4);
  CHECK(after == std::vector<std::string>(before.begin() + 2, before.end()));
  words.insert(words.end(), {"--set", "data.shuffle_shards=2"});
  const Outcome changed = RunTroupe(words);
  INFO(changed.out << changed.err);
  CHECK(changed.exit_code == 2);
  CHECK_THAT(changed.err, Contains("--accept"));
}

TEST_CASE("data show and stat say what a step and a source hold", "[cli]") {
  const ShardRuns runs;
  const Outcome show = runs.Run({"data", "show"}, {});
  INFO(show.out << show.err);
  REQUIRE(show.exit_code == 0);
  CHECK_THAT(show.out,
             Catch::StartsWith("step 1: places 0 to 7 of the order\nmicrobatch 0\n  0  "));
  CHECK(std::ranges::count(show.out, '\n') == 1 + 2 + 8);
  std::vector<std::string> words = runs.Words({"data", "show"}, {});
  words.insert(words.end(), {"--step", "5", "--text"});
  CHECK_THAT(RunTroupe(words).out, Contains("\n      model  \"shape "));
  words.back() = "--step=0";
  CHECK(RunTroupe(words).exit_code == 2);
  const Outcome stat = runs.Run({"data", "stat"}, {});
  CHECK_THAT(stat.out, Contains("s{00..69}.tar: 280 rows\n") && Contains("train.json: 1 row\n") &&
                           Contains("squares of image: 1 to 1, mean 1.0"));
  const Outcome none = RunTroupe({"data", "stat", "configs/synthetic_chain.toml"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("synthetic modules read no data"));
}

TEST_CASE("what is wrong with sources is said before a run starts", "[cli]") {
  const ShardRuns runs;
  const auto error = [&](const std::string& sources, const std::string& more = "run.seed=1") {
    const Outcome outcome = runs.Run({"train"}, {"data.sources=" + sources, more});
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(error("[{ path = 'none{1..3}.tar' }]"), Contains("none1.tar: no such file"));
  CHECK_THAT(error("[{ path = 'none.tar' }]"),
             Contains("data.sources.0.path") && Contains("no such file"));
  CHECK_THAT(error("[{ path = 'a{1.tar' }]"), Contains("expected { and } in pairs"));
  CHECK_THAT(error("[{ path = 'a.csv' }]"),
             Contains("expected a *.json, *.jsonl, *.tar or *.parquet"));
  WriteFile(runs / "zip.tar", "\x1f\x8b\x08 compressed");
  CHECK_THAT(error("[{ path = '" + runs / "zip.tar" + "' }]"), Contains("must be unpacked first"));
  WriteFile(runs / "file", "");
  const Outcome cache = runs.Run({"train"}, {"data.cache=" + runs / "file"});
  CHECK(cache.exit_code == 2);
  CHECK_THAT(cache.err, Contains("data.cache: "));
}

}  // namespace
}  // namespace troupe
