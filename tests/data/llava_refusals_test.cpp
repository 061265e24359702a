// Rows, images and configurations that a source refuses, or skips where it may.
#include <algorithm>
#include <filesystem>
#include <set>

#include <catch2/catch.hpp>

#include "tests/data/llava_set.hpp"

namespace troupe {
namespace {

TEST_CASE("an image that is missing or broken is named with its row", "[data]") {
  const DataSet data;
  const std::string held_out = data.folder() / "held_out.json";
  RowSource source(Disjoint(data));
  std::filesystem::remove(data.folder() / "13_0.png");
  CHECK_THROWS_WITH(
      source.LoadWhole(EvaluationRound(2)),
      held_out + ": row 0 (id \"r13\"): " + (data.folder() / "13_0.png") + ": no such file");
  data.folder().Write("13_0.png", "BM....");
  CHECK_THROWS_WITH(source.LoadWhole(EvaluationRound(2)),
                    held_out + ": row 0 (id \"r13\"): " + (data.folder() / "13_0.png") +
                        ": expected a jpeg, png, webp or gif, got a file of another format (bmp): "
                        "convert it and correct the row");
}

/// The image of row 4 is cut short in its pixels, that of row 10 is gone.
void SpoilImages(const DataSet& data) {
  const std::string whole = BytesOf(data.folder() / "4_0.png");
  data.folder().Write("4_0.png", whole.substr(0, whole.size() - 20));
  std::filesystem::remove(data.folder() / "10_0.png");
}

TEST_CASE("rows whose images cannot be used stop a run before its first step, all at once",
          "[data]") {
  const DataSet data;
  SpoilImages(data);
  const Config config = Disjoint(data);
  CHECK_NOTHROW(RowSource(config));
  const std::string gone = config.data.train +
                           ": row 10 (id \"r10\"): " + (data.folder() / "10_0.png") +
                           ": no such file";
  CHECK_THROWS_WITH(RowSource(config, FileDepth::kHeader), gone);
  CHECK_THROWS_WITH(RowSource(config, FileDepth::kDecode),
                    Catch::Contains("row 4 (id \"r4\"): ") && Catch::EndsWith("\n" + gone));
}

TEST_CASE("skipped rows are replaced by the next one, the same on every replica", "[data]") {
  const DataSet data;
  SpoilImages(data);
  std::filesystem::remove(data.folder() / "13_0.png");  // row 0 of the held-out file
  RowSource source(Disjoint(data), FileDepth::kDecode, FaultPolicy{.on_error = OnError::kSkip});
  CHECK(source.SkippedText() == "4, 10 of data.train, 0 of data.held_out");
  REQUIRE(source.skipped_lines().size() == 4);
  CHECK(source.skipped_lines()[3] ==
        "data.on_error = \"skip\": 3 rows are skipped; in training the next row of its source "
        "takes its place");
  for (std::int64_t step = 0; step < 6; ++step) {
    std::int64_t skipped = 0;
    std::vector<int> rows;
    for (std::int64_t k = 0; k < 12; ++k) {
      const int drawn = ExpectedRow(step, k);
      const bool bad = drawn == 4 || drawn == 10;
      skipped += bad;
      rows.push_back(bad ? drawn + 1 : drawn);
    }
    CHECK(source.CountSkipped(TrainRound(step)) == skipped);
    for (std::int64_t unit = 0; unit < 3; ++unit) {
      std::vector<int> text;
      std::vector<int> greys;
      for (const int dp : {0, 1}) {
        const auto part = RowsOfText(*source.Load("language", dp, TrainRound(step), unit));
        text.insert(text.end(), part.begin(), part.end());
      }
      for (const int dp : {0, 1, 2}) {
        const auto inputs = source.Load("vision", dp, TrainRound(step), unit);
        const auto part = Greys(inputs->fields.at("vision"));
        greys.insert(greys.end(), part.begin(), part.end());
      }
      const std::vector<int> expected(rows.begin() + unit * 4, rows.begin() + unit * 4 + 4);
      CHECK(text == expected);
      CHECK(greys == GreysOfRows(expected));
    }
  }
  CHECK(RowsOfText(source.LoadWhole(EvaluationRound(2)))[0] == -1);
  CHECK(source.CountSkipped(EvaluationRound(2)) == 1);
}

TEST_CASE("an image that fails in decoding is replaced by zeros at its place", "[data]") {
  const DataSet sound;
  RowSource whole(Disjoint(sound));
  const DataSet data;
  const std::string bytes = BytesOf(data.folder() / "4_0.png");
  data.folder().Write("4_0.png", bytes.substr(0, bytes.size() - 20));
  RowSource source(Disjoint(data), FileDepth::kHeader, FaultPolicy{.on_error = OnError::kSkip});
  CHECK(source.num_used_rows() == source.train_size());
  std::int64_t num_replaced = 0;
  for (std::int64_t step = 0; step < 6; ++step) {
    for (std::int64_t unit = 0; unit < 3; ++unit) {
      for (const int dp : {0, 1, 2}) {
        const auto before = whole.Load("vision", dp, TrainRound(step), unit);
        const auto after = source.Load("vision", dp, TrainRound(step), unit);
        std::vector<int> expected = Greys(before->fields.at("vision"));
        CHECK(after->table == before->table);
        for (const ReplacedItem& item : after->replaced) {
          CHECK(item.row == 4);
          CHECK(item.train);
          CHECK_THAT(item.line, Catch::Contains("row 4 (id \"r4\"): ") &&
                                    Catch::EndsWith("; replaced by the mean colour"));
        }
        num_replaced += std::ssize(after->replaced);
        std::replace(expected.begin(), expected.end(), int{DataSet::Grey(4, 0)}, kGreyOfZero);
        CHECK(Greys(after->fields.at("vision")) == expected);
      }
    }
  }
  CHECK(num_replaced > 1);
  RowSource strict(Disjoint(data));
  CHECK_THROWS_WITH(strict.LoadWhole(TrainRound(0)), Catch::Contains("row 4 (id \"r4\"): "));
}

TEST_CASE("a row whose image is bad stays in its place with zeros, if it is to be substituted",
          "[data]") {
  const DataSet sound;
  RowSource whole(Disjoint(sound));
  const DataSet data;
  SpoilImages(data);
  std::filesystem::remove(data.folder() / "13_0.png");  // row 0 of the held-out file
  RowSource source(Disjoint(data), FileDepth::kHeader,
                   FaultPolicy{.on_error = OnError::kSubstitute});
  CHECK(source.num_used_rows() == source.train_size());
  REQUIRE(source.skipped_lines().size() == 3);
  CHECK_THAT(source.skipped_lines()[0], Catch::EndsWith("10_0.png: no such file; replaced"));
  CHECK(source.skipped_lines()[2] ==
        "data.on_error = \"substitute\": 2 rows are used without a file that is bad");
  std::set<std::int64_t> replaced;
  for (std::int64_t step = 0; step < 6; ++step) {
    CHECK(source.CountSkipped(TrainRound(step)) == 0);
    for (std::int64_t unit = 0; unit < 3; ++unit) {
      for (const int dp : {0, 1}) {
        CHECK(RowsOfText(*source.Load("language", dp, TrainRound(step), unit)) ==
              RowsOfText(*whole.Load("language", dp, TrainRound(step), unit)));
      }
      for (const int dp : {0, 1, 2}) {
        const auto before = whole.Load("vision", dp, TrainRound(step), unit);
        const auto after = source.Load("vision", dp, TrainRound(step), unit);
        std::vector<int> expected = Greys(before->fields.at("vision"));
        std::replace(expected.begin(), expected.end(), int{DataSet::Grey(4, 0)}, kGreyOfZero);
        std::replace(expected.begin(), expected.end(), int{DataSet::Grey(10, 0)}, kGreyOfZero);
        CHECK(Greys(after->fields.at("vision")) == expected);
        for (const ReplacedItem& item : after->replaced) replaced.insert(item.row);
      }
    }
  }
  CHECK(replaced == std::set<std::int64_t>{4, 10});
  CHECK(RowsOfText(source.LoadWhole(EvaluationRound(2)))[0] != -1);
}

TEST_CASE("more rows than data.skip_limit are not skipped", "[data]") {
  const DataSet data;
  SpoilImages(data);
  const Config config = Disjoint(data);
  CHECK_THROWS_WITH(
      RowSource(config, FileDepth::kDecode, FaultPolicy{.on_error = OnError::kSkip, .limit = 1}),
      Catch::EndsWith(
          "\ndata.skip_limit: expected at most 1 rows and files that cannot be used, got more; "
          "`troupe data check` lists all"));
  CHECK_NOTHROW(
      RowSource(config, FileDepth::kDecode, FaultPolicy{.on_error = OnError::kSkip, .limit = 2}));
}

TEST_CASE("a limit counts files that are replaced, at the start as later", "[data]") {
  const DataSet data;
  for (const char* image : {"5_0.png", "5_1.png"}) std::filesystem::remove(data.folder() / image);
  const Config config = Disjoint(data);
  const auto open = [&](std::int64_t limit) {
    return std::make_unique<RowSource>(
        config, FileDepth::kHeader, FaultPolicy{.on_error = OnError::kSubstitute, .limit = limit});
  };
  CHECK_THROWS_WITH(open(1), Catch::Contains("data.skip_limit: expected at most 1 rows and files"));
  const auto source = open(2);
  CHECK_THAT(source->skipped_lines().back(), Catch::Contains("1 row is used without"));
  std::set<ReplacedItem> replaced = {{true, 0, 5, "5_0.png", ""}, {true, 0, 5, "5_1.png", ""}};
  CHECK_NOTHROW(source->RequireWithinLimits(replaced));
  replaced.insert({true, 0, 6, "6_0.png", ""});
  CHECK_THROWS_WITH(source->RequireWithinLimits(replaced), Catch::Contains("at most 2 rows"));
}

TEST_CASE("rows all of whose images are bad have answers to learn from", "[data]") {
  const DataSet data;
  for (int row = 13; row < 18; ++row) {
    for (int image = 0; image < row % 3; ++image) {
      std::filesystem::remove(data.folder() /
                              (std::to_string(row) + "_" + std::to_string(image) + ".png"));
    }
  }
  CHECK_NOTHROW(
      RowSource(Disjoint(data), FileDepth::kHeader, FaultPolicy{.on_error = OnError::kSubstitute}));
}

TEST_CASE("packs depend on what happens with bad rows", "[data]") {
  const DataSet sound;
  const DataSet data;
  std::filesystem::remove(data.folder() / "10_0.png");
  const auto digest = [](const DataSet& set, bool packing, OnError on_error) {
    Config config = Disjoint(set);
    config.data.packing = packing;
    return RowSource(config, FileDepth::kHeader, FaultPolicy{.on_error = on_error}).TrainDigest();
  };
  CHECK(digest(data, true, OnError::kSkip) != digest(data, true, OnError::kSubstitute));
  CHECK(digest(data, false, OnError::kSkip) == digest(data, false, OnError::kSubstitute));
  CHECK(digest(sound, true, OnError::kSkip) == digest(sound, true, OnError::kStop));
}

TEST_CASE("a source that cannot be built says why", "[data]") {
  const DataSet data;
  Config config = Disjoint(data);
  config.modules[1].As<LlamaConfig>().vocab = 259;
  CHECK_THROWS_WITH(RowSource(config),
                    "modules.language.vocab: expected at least 260 for tokenizer \"bytes\" with 1 "
                    "placeholders, got 259");
  config = Disjoint(data);
  config.data.train = data.folder().Write("empty.json", "[]");
  CHECK_THROWS_WITH(RowSource(config),
                    config.data.train + ": expected at least one row, found none");
  config = Disjoint(data);
  config.data.held_out = "none.json";
  CHECK_THROWS_WITH(RowSource(config), "none.json: no such file");
  config = Disjoint(data);
  config.modules[1].As<LlamaConfig>().context = 5;
  CHECK_THROWS_WITH(RowSource(config),
                    Catch::StartsWith(config.data.train +
                                      ": row 1 (id \"r1\"): the context of 5 tokens would cut an "
                                      "image, its last row is token 6\n"));
}

TEST_CASE("rows without an answer inside the context are refused or counted", "[data]") {
  const DataSet data;
  Config config = Disjoint(data);
  const std::string question(200, 'q');
  const auto row = [](const std::string& id, const std::string& asked) {
    return R"({"id": ")" + id + R"(", "conversations": [{"from": "human", "value": ")" + asked +
           R"("}, {"from": "gpt", "value": "yes"}]})";
  };
  config.data.held_out.clear();
  config.modules[1].As<LlamaConfig>().context = 40;
  config.data.train = data.folder().Write("long.json", "[" + row("a", question) + "]");
  CHECK_THROWS_WITH(RowSource(config),
                    config.data.train +
                        ": expected answers to learn from, no row has one within "
                        "the context of 40 tokens");
  config.data.train =
      data.folder().Write("mixed.json", "[" + row("a", question) + "," + row("b", "q") + "]");
  const RowSource source(config);
  CHECK(source.num_cut_rows() == 1);
}

TEST_CASE("modules, replicas and units that do not exist are refused", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
  CHECK_THROWS_WITH(source.Load("audio", 0, TrainRound(0), 0), "audio: no such module");
  CHECK_THROWS_WITH(source.Load("vision", 3, TrainRound(0), 0),
                    "vision: expected a replica in [0, 3), got 3");
  CHECK_THROWS_WITH(source.Load("language", 0, TrainRound(0), 3),
                    "language: expected a microbatch in [0, 3), got 3");
  CHECK_THROWS_WITH(source.Load("vision", 0, TrainRound(0), -1),
                    "vision: expected a microbatch in [0, 3), got -1");
}

}  // namespace
}  // namespace troupe
