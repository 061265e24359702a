// Training on several sources, of lists and of shards.
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/data/llava_set.hpp"
#include "tests/data/write_tar.hpp"

namespace troupe {
namespace {

/// A list of 13 rows (DataSet), and three shards of 5, 7 and 6 rows, whose answers are 100 and up and
/// whose image has the row's number as its grey.
class Sources {
 public:
  Sources() {
    int row = 100;
    for (const int count : {5, 7, 6}) {
      TarWriter tar;
      for (int i = 0; i < count; ++i, ++row) {
        const std::string key = std::to_string(row);
        const std::string image = data.folder() / "in_tar.png";
        WritePng(image, {kImageSize, kImageSize,
                         std::vector<std::uint8_t>(kImageSize * kImageSize * 3,
                                                   static_cast<std::uint8_t>(row))});
        tar.Add(key + ".png", ::troupe::BytesOf(image)).Add(key + ".txt", "y" + key);
      }
      data.folder().Write("s" + std::to_string(num_shards++) + ".tar", tar.Bytes());
    }
  }

  Config With(Config config, double list, double shards) const {
    config.data.sources = {{config.data.train, "auto", list},
                           {data.folder() / "s{0..2}.tar", "webdataset", shards}};
    config.data.train = "";
    config.data.shuffle_shards = 2;
    return config;
  }

  DataSet data;
  int num_shards = 0;
};

/// The answers of the samples of some steps, in order.
std::vector<int> Sequence(const Config& config, std::int64_t steps) {
  RowSource source(config);
  const int dp = config.Sink().layout.dp;
  const std::int64_t batch = config.global_batch();
  std::vector<int> rows;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Round round{.number = step,
                      .step = step,
                      .microbatches = config.schedule.microbatches,
                      .place = step * batch,
                      .group = batch};
    for (std::int64_t unit = 0; unit < config.schedule.microbatches; ++unit) {
      for (int replica = 0; replica < dp; ++replica) {
        const auto part = RowsOfText(*source.Load("language", replica, round, unit));
        rows.insert(rows.end(), part.begin(), part.end());
      }
    }
  }
  return rows;
}

TEST_CASE("sources have their shares of the samples, and each row comes once in its epoch",
          "[data]") {
  const Sources sources;
  const Config config = sources.With(Disjoint(sources.data), 0.25, 0.75);
  const std::vector<int> rows = Sequence(config, 12);
  std::map<int, int> counts;
  int shards = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ++counts[rows[i]];
    shards += rows[i] >= 100;
    CHECK(std::abs(shards - 0.75 * static_cast<double>(i + 1)) < 1);
  }
  CHECK(rows.size() == 144);
  for (int row = 0; row < 13; ++row) CHECK((counts[row] == 2 || counts[row] == 3));
  for (int row = 100; row < 118; ++row) CHECK(counts[row] == 6);
  CHECK(counts.size() == 13 + 18);
}

TEST_CASE("the samples are the same for every number of replicas and batches", "[data]") {
  const Sources sources;
  std::vector<int> first;
  for (const int dp : {1, 2, 3, 8}) {
    Config config = MakeConfig(sources.data, Vit("vision", {8}, 1), Llama({0}, 1, dp));
    config.modules[1].ranks.clear();
    for (int rank = 0; rank < dp; ++rank) config.modules[1].ranks.push_back(rank);
    config.cluster.ranks = 9;
    config.schedule.micro_batch_size = 2;
    const std::vector<int> rows = Sequence(sources.With(config, 2, 3), 48 / dp);
    REQUIRE(rows.size() == 288);
    if (first.empty()) first = rows;
    CHECK(rows == first);
  }
}

TEST_CASE("groups of several sources have the samples of an ungrouped order", "[data]") {
  const Sources sources;
  Config config = sources.With(Disjoint(sources.data), 0.25, 0.75);
  std::vector<int> ungrouped = Sequence(config, 31);  // 12 windows of 31 places
  config.data.group_by = GroupBy::kModalityLength;
  std::vector<int> grouped = Sequence(config, 31);
  CHECK(grouped != ungrouped);
  std::ranges::sort(ungrouped);
  std::ranges::sort(grouped);
  CHECK(grouped == ungrouped);
}

TEST_CASE("images of shards reach the encoder of their sample", "[data]") {
  const Sources sources;
  RowSource source(sources.With(Disjoint(sources.data), 1, 2), FileDepth::kDecode);
  int in_shards = 0;
  for (std::int64_t unit = 0; unit < 3; ++unit) {
    std::vector<int> rows;
    for (const int dp : {0, 1}) {
      const auto part = RowsOfText(*source.Load("language", dp, TrainRound(4), unit));
      rows.insert(rows.end(), part.begin(), part.end());
    }
    std::vector<int> expected;
    for (const int row : rows) {
      const std::vector<int> of_list = row < 100 ? GreysOfRows({row}) : std::vector<int>{row};
      expected.insert(expected.end(), of_list.begin(), of_list.end());
      in_shards += row >= 100;
    }
    std::vector<int> greys;
    for (const int dp : {0, 1, 2}) {
      const auto inputs = source.Load("vision", dp, TrainRound(4), unit);
      const auto part = Greys(inputs->fields.at("vision"));
      greys.insert(greys.end(), part.begin(), part.end());
      CHECK(inputs->names.size() == inputs->table.samples.size());
    }
    CHECK(greys == expected);
  }
  CHECK(in_shards == 8);
}

TEST_CASE("every worker prepares the same bytes of a sample", "[data]") {
  const Sources sources;
  RowSource source(sources.With(Disjoint(sources.data), 1, 2), FileDepth::kDecode);
  std::vector<SampleTicket> tickets;
  for (std::int64_t unit = 0; unit < 3; ++unit) {
    for (const int dp : {0, 1, 2}) {
      for (const SampleTicket& ticket : source.TicketsOf({"vision", dp, TrainRound(1), unit})) {
        tickets.push_back(ticket);
      }
    }
  }
  REQUIRE(tickets.size() == 12);
  const auto text_of = [](const Buffer& sample) {
    return std::string(reinterpret_cast<const char*>(sample.data()), sample.num_bytes());
  };
  std::vector<std::string> expected;
  for (const SampleTicket& ticket : tickets) expected.push_back(text_of(source.Prepare(ticket)));
  CHECK(std::set<std::string>(expected.begin(), expected.end()).size() == 12);
  std::vector<std::vector<std::string>> prepared(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : prepared) {
      threads.emplace_back([&] {
        for (const SampleTicket& ticket : tickets) own.push_back(text_of(source.Prepare(ticket)));
      });
    }
  }
  for (const auto& own : prepared) CHECK(own == expected);
}

TEST_CASE("what the order of training depends on is part of its digest", "[data]") {
  const Sources sources;
  const Config config = sources.With(Disjoint(sources.data), 1, 2);
  const std::string digest = RowSource(config).TrainDigest();
  CHECK(RowSource(sources.With(Disjoint(sources.data), 2, 4)).TrainDigest() == digest);
  CHECK(RowSource(sources.With(Disjoint(sources.data), 1, 3)).TrainDigest() != digest);
  Config other = config;
  other.data.shuffle_shards = 3;
  CHECK(RowSource(other).TrainDigest() != digest);
  other = config;
  other.modules[1].As<LlamaConfig>().context = 150;
  CHECK(RowSource(other).TrainDigest() == digest);
  sources.data.folder().Write("s1.tar", TarWriter().Add("0.txt", "x").Bytes());
  CHECK_THROWS_WITH(RowSource(config), Catch::Contains("s1.tar: row 0 (id \"0\"): "));
}

TEST_CASE("a bad row of a shard is skipped within its source", "[data]") {
  const Sources sources;
  TarWriter tar;
  tar.Add("../bad.png", "").Add("../bad.txt", "y300");
  for (int row = 301; row < 304; ++row) {
    const std::string key = std::to_string(row);
    tar.Add(key + ".png", BytesOf(sources.data.folder() / "in_tar.png"))
        .Add(key + ".txt", "y" + key);
  }
  sources.data.folder().Write("s2.tar", tar.Bytes());
  const Config config = sources.With(Disjoint(sources.data), 1, 2);
  CHECK_THROWS_WITH(RowSource(config), Catch::Contains("s2.tar: row 0 (id \"../bad\"): member"));
  RowSource source(config, FileDepth::kHeader, FaultPolicy{.on_error = OnError::kSkip});
  CHECK(source.skipped_lines().size() == 2);
  std::map<int, int> counts;
  for (std::int64_t step = 0; step < 15; ++step) {
    for (std::int64_t unit = 0; unit < 3; ++unit) {
      for (const int dp : {0, 1}) {
        for (const int row : RowsOfText(*source.Load("language", dp, TrainRound(step), unit))) {
          ++counts[row];
        }
      }
    }
  }
  CHECK(counts.contains(301));
  CHECK_FALSE(counts.contains(300));
  CHECK(counts[301] > counts[302]);  // it takes the place of the bad one, too
}

TEST_CASE("each source has its own policy for bad rows, and its own limit", "[data]") {
  const Sources sources;
  TarWriter tar;
  tar.Add("../bad.png", "").Add("../bad.txt", "y300");
  tar.Add("301.png", BytesOf(sources.data.folder() / "in_tar.png")).Add("301.txt", "y301");
  sources.data.folder().Write("s2.tar", tar.Bytes());
  std::filesystem::remove(sources.data.folder() / "10_0.png");  // of the list
  Config config = sources.With(Disjoint(sources.data), 1, 2);
  const auto open = [&](OnError common) {
    return std::make_unique<RowSource>(config, FileDepth::kHeader, FaultPolicy{.on_error = common});
  };
  CHECK_THROWS_WITH(open(OnError::kStop), Catch::Contains("10_0.png") && Catch::Contains("bad"));
  config.data.sources[1].on_error = OnError::kSkip;
  CHECK_THROWS_WITH(open(OnError::kStop), Catch::Contains("10_0.png") && !Catch::Contains("bad"));
  CHECK(open(OnError::kSkip)->num_used_rows() == open(OnError::kSkip)->train_size() - 2);
  config.data.sources[0].on_error = OnError::kSubstitute;
  const auto source = open(OnError::kStop);
  CHECK(source->num_used_rows() == source->train_size() - 1);
  REQUIRE(source->skipped_lines().size() == 4);
  CHECK(source->skipped_lines()[1] ==
        "data.sources.0.on_error = \"substitute\": 1 row is used without a file that is bad");
  CHECK_THAT(source->skipped_lines()[3],
             Catch::StartsWith("data.sources.1.on_error = \"skip\": 1 row is skipped"));
  // What is replaced while the run goes on counts in its source alone.
  std::set<ReplacedItem> replaced = {{true, 0, 1, "a", ""}, {true, 1, 2, "b", ""}};
  config.data.sources[1].skip_limit = 2;
  CHECK_NOTHROW(open(OnError::kStop)->RequireWithinLimits(replaced));
  replaced.insert({true, 1, 3, "c", "c is bad"});
  CHECK_THROWS_WITH(
      open(OnError::kStop)->RequireWithinLimits(replaced),
      "data.sources.1.skip_limit: expected at most 2 rows and files that cannot be used, got more; "
      "`troupe data check` lists all; one is c is bad");
  config.data.sources[1].skip_limit = 0;
  CHECK_THROWS_WITH(open(OnError::kStop),
                    Catch::EndsWith("data.sources.1.skip_limit: expected at most 0 rows and files "
                                    "that cannot be used, got more; "
                                    "`troupe data check` lists all"));
}

}  // namespace
}  // namespace troupe
