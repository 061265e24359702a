#include "data/llava_source.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "data/image.hpp"
#include "data/sample_order.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

constexpr int kSize = 4;  // pixels; patches of 2 give 4 rows per image

/// A data set whose every image and every answer is different: row i has i % 3 images, image j of
/// it is filled with grey 10 + 8 * i + 2 * j, and the answer is i times "x" and the row's number.
class DataSet {
 public:
  DataSet() {
    WriteSet("train.json", 0, 13);
    WriteSet("held_out.json", 13, 5);
  }

  static std::uint8_t Grey(int row, int image) {
    return static_cast<std::uint8_t>(10 + 8 * row + 2 * image);
  }
  const ScratchFolder& folder() const { return folder_; }

 private:
  void WriteSet(const std::string& name, int first, int count) {
    std::string text;
    for (int row = first; row < first + count; ++row) {
      std::string images;
      std::string question;
      for (int image = 0; image < row % 3; ++image) {
        const std::string file = std::to_string(row) + "_" + std::to_string(image) + ".png";
        WritePng(folder_ / file,
                 {kSize, kSize, std::vector<std::uint8_t>(kSize * kSize * 3, Grey(row, image))});
        images += (image > 0 ? ", \"" : "\"") + file + "\"";
        question += std::string(static_cast<std::size_t>(row), 'q') + "<image>";
      }
      text += (row == first ? "[" : ",") + std::string("{\"id\": \"r") + std::to_string(row) +
              "\", \"image\": [" + images +
              "], \"conversations\": [{\"from\": \"human\", \"value\": \"" + question +
              "\"}, {\"from\": \"gpt\", \"value\": \"" +
              std::string(static_cast<std::size_t>(row), 'x') + std::to_string(row) + "\"}]}";
    }
    folder_.Write(name, text + "]");
  }

  ScratchFolder folder_;
};

ModuleConfig Vit(const std::string& name, std::vector<int> ranks, int dp) {
  ModuleConfig module;
  module.name = name;
  module.kind = ModuleKind::kVit;
  module.layout.dp = dp;
  module.ranks = std::move(ranks);
  module.input = InputConfig{};
  module.vit.image_size = kSize;
  module.vit.patch_size = 2;
  return module;
}

ModuleConfig Llama(std::vector<int> ranks, int tp, int dp) {
  ModuleConfig module;
  module.name = "language";
  module.kind = ModuleKind::kLlama;
  module.layout.tp = tp;
  module.layout.dp = dp;
  module.ranks = std::move(ranks);
  module.llama.vocab = 262;
  module.llama.context = 200;
  return module;
}

/// `vision` feeds a language model; 3 microbatches of 2 samples per replica.
Config MakeConfig(const DataSet& data, const ModuleConfig& vision, const ModuleConfig& language) {
  Config config;
  config.run.seed = 5;
  config.cluster.ranks = 8;
  config.modules = {vision, language};
  config.edges = {{vision.name, language.name, std::nullopt, 4}};
  config.schedule.micro_batch_size = 2;
  config.schedule.microbatches = 3;
  config.data.train = data.folder() / "train.json";
  config.data.held_out = data.folder() / "held_out.json";
  return config;
}

Config Disjoint(const DataSet& data) {
  return MakeConfig(data, Vit("vision", {4, 5, 6}, 3), Llama({0, 1}, 1, 2));
}

Round TrainRound(std::int64_t step) { return {step, true, step, 3, 1.0}; }
Round EvaluationRound(std::int64_t microbatches) { return {9, false, 4, microbatches, 1.0}; }

/// The row that sample k of a training round of step `step` must be, with 12 samples per round.
int ExpectedRow(std::int64_t step, std::int64_t k) {
  const std::int64_t place = step * 12 + k;
  return static_cast<int>(SampleOrder(5, place / 13, place % 13, 13));
}

/// Rows of the data set as the answers in `inputs` say them, -1 for an empty sample.
std::vector<int> RowsOfText(const Inputs& inputs) {
  std::vector<int> rows;
  const std::int64_t num_tokens = inputs.tokens.shape()[1];
  for (std::int64_t b = 0; b < inputs.tokens.num_rows(); ++b) {
    std::string answer;
    for (std::int64_t t = 0; t < num_tokens; ++t) {
      const std::int64_t label = inputs.labels.as<std::int64_t>()[b * num_tokens + t];
      if (label >= '0' && label <= '9') answer += static_cast<char>(label);
    }
    rows.push_back(answer.empty() ? -1 : std::stoi(answer));
  }
  return rows;
}

/// Grey of every image, as DataSet wrote it.
std::vector<int> Greys(const Buffer& images) {
  std::vector<int> greys;
  for (std::int64_t i = 0; i < images.num_rows(); ++i) {
    const float red = images.as<float>()[i * 3 * kSize * kSize];
    greys.push_back(static_cast<int>(std::lround((red * 0.26862954 + 0.48145466) * 255)));
  }
  return greys;
}

std::vector<int> GreysOfRows(const std::vector<int>& rows) {
  std::vector<int> greys;
  for (const int row : rows) {
    for (int image = 0; image < row % 3; ++image) greys.push_back(DataSet::Grey(row, image));
  }
  return greys;
}

std::vector<std::int64_t> RowCounts(const std::vector<int>& rows) {
  std::vector<std::int64_t> counts;
  for (const int row : rows) counts.push_back(row < 0 ? 0 : 4 * (row % 3));
  return counts;
}

TEST_CASE("every language replica gets its part of the microbatch, in order", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  for (std::int64_t step = 0; step < 3; ++step) {
    for (std::int64_t microbatch = 0; microbatch < 3; ++microbatch) {
      for (int dp = 0; dp < 2; ++dp) {
        const auto inputs = source.Load("language", dp, TrainRound(step), microbatch);
        const std::vector<int> expected = {ExpectedRow(step, microbatch * 4 + 2 * dp),
                                           ExpectedRow(step, microbatch * 4 + 2 * dp + 1)};
        CHECK(RowsOfText(*inputs) == expected);
        const RowTable rows = {{2 * dp, 2 * dp + 1}, RowCounts(expected)};
        CHECK(inputs->expected.at("vision") == rows);
        CHECK(inputs->table.samples == rows.samples);
        CHECK(inputs->images.empty());
      }
    }
  }
}

TEST_CASE("a disjoint encoder gets the images of its own part of the microbatch", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  // 4 samples among 3 replicas: 1, 1 and 2 of them.
  const std::vector<std::vector<std::int64_t>> parts = {{0}, {1}, {2, 3}};
  for (std::int64_t microbatch = 0; microbatch < 3; ++microbatch) {
    for (int dp = 0; dp < 3; ++dp) {
      const auto inputs = source.Load("vision", dp, TrainRound(1), microbatch);
      const auto& samples = parts[static_cast<std::size_t>(dp)];
      std::vector<int> rows;
      for (const std::int64_t n : samples) rows.push_back(ExpectedRow(1, microbatch * 4 + n));
      CHECK(inputs->table == RowTable{samples, RowCounts(rows)});
      CHECK(Greys(inputs->images.at("vision")) == GreysOfRows(rows));
      CHECK_FALSE(inputs->tokens.defined());
    }
  }
}

void CheckPositions(const Inputs& inputs) {
  const Buffer& positions = inputs.positions.at("vision");
  CHECK(positions.num_rows() == inputs.expected.at("vision").num_rows());
  const auto* tokens = inputs.tokens.as<std::int64_t>();
  std::vector<std::int64_t> placeholders;
  for (std::int64_t i = 0; i < inputs.tokens.num_elements(); ++i) {
    if (tokens[i] == 259) placeholders.push_back(i);
  }
  const auto* begin = positions.as<std::int64_t>();
  CHECK(std::vector<std::int64_t>(begin, begin + positions.num_rows()) == placeholders);
  CHECK_FALSE(placeholders.empty());
}

TEST_CASE("positions point at the placeholders, sample by sample", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  CheckPositions(*source.Load("language", 1, TrainRound(0), 1));
  // Twelve samples of many lengths: most are followed by padding.
  CheckPositions(source.LoadWhole(TrainRound(0)));
}

TEST_CASE("text is padded to the longest sample of the shard", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  const auto inputs = source.Load("language", 0, TrainRound(0), 0);
  const std::int64_t num_tokens = inputs->tokens.shape()[1];
  CHECK(inputs->labels.shape() == inputs->tokens.shape());
  CHECK(inputs->content.shape() == inputs->tokens.shape());
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < 2; ++b) {
    const auto* tokens = inputs->tokens.as<std::int64_t>() + b * num_tokens;
    lengths.push_back(std::find(tokens, tokens + num_tokens, 258) - tokens);
    CHECK(std::count(tokens, tokens + num_tokens, 258) == num_tokens - lengths.back());
  }
  CHECK(std::max(lengths[0], lengths[1]) == num_tokens);
  CHECK(lengths[0] != lengths[1]);
}

TEST_CASE("a colocated encoder encodes what its own ranks will read, window by window", "[data]") {
  const DataSet data;
  // Language replicas on ranks {0, 1} and {2, 3}; encoder replica r on rank r.
  Config config = MakeConfig(data, Vit("vision", {0, 1, 2, 3}, 4), Llama({0, 1, 2, 3}, 2, 2));
  config.schedule.window = 2;
  LlavaSource source(config);
  for (std::int64_t window = 0; window < 2; ++window) {
    const std::int64_t length = window == 0 ? 2 : 1;  // of 3 microbatches
    for (int dp = 0; dp < 4; ++dp) {
      const auto inputs = source.Load("vision", dp, TrainRound(2), window);
      RowTable table;
      std::vector<int> rows;
      for (std::int64_t m = 0; m < length; ++m) {
        table.samples.push_back(m * 4 + dp);
        rows.push_back(ExpectedRow(2, (window * 2 + m) * 4 + dp));
      }
      table.rows = RowCounts(rows);
      CHECK(inputs->table == table);
      CHECK(Greys(inputs->images.at("vision")) == GreysOfRows(rows));
    }
  }
  CHECK_THROWS_WITH(source.Load("vision", 0, TrainRound(0), 2),
                    "vision: expected a window in [0, 2), got 2");
}

TEST_CASE("an inline encoder's images come with the language model's text", "[data]") {
  const DataSet data;
  ModuleConfig vision = Vit("vision", {}, 1);
  vision.inline_in = "language";
  LlavaSource source(MakeConfig(data, vision, Llama({0, 1}, 1, 2)));
  for (int dp = 0; dp < 2; ++dp) {
    const auto inputs = source.Load("language", dp, TrainRound(0), 2);
    const auto rows = RowsOfText(*inputs);
    CHECK(Greys(inputs->images.at("vision")) == GreysOfRows(rows));
    CHECK(inputs->expected.at("vision").rows == RowCounts(rows));
    CHECK(inputs->positions.at("vision").num_rows() == inputs->expected.at("vision").num_rows());
  }
  CHECK_THROWS_WITH(source.Load("vision", 0, TrainRound(0), 0),
                    "vision: expected a module that reads data by itself");
}

TEST_CASE("the whole round is the microbatches one behind the other", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  for (const Round& round : {TrainRound(1), EvaluationRound(2)}) {
    const Inputs whole = source.LoadWhole(round);
    std::vector<int> rows;
    for (std::int64_t microbatch = 0; microbatch < round.microbatches; ++microbatch) {
      for (int dp = 0; dp < 2; ++dp) {
        for (const int row : RowsOfText(*source.Load("language", dp, round, microbatch))) {
          rows.push_back(row);
        }
      }
    }
    CHECK(RowsOfText(whole) == rows);
    CHECK(Greys(whole.images.at("vision")) == GreysOfRows(rows));
    CHECK(whole.expected.at("vision").rows == RowCounts(rows));
    CHECK(whole.positions.at("vision").num_rows() == whole.expected.at("vision").num_rows());
    CHECK(whole.table.samples.back() == round.microbatches * 4 - 1);
  }
}

TEST_CASE("which rows a step sees does not depend on the layout", "[data]") {
  const DataSet data;
  LlavaSource wide(Disjoint(data));
  Config config = MakeConfig(data, Vit("vision", {1}, 1), Llama({0}, 1, 1));
  config.schedule.micro_batch_size = 4;
  LlavaSource narrow(config);
  CHECK(RowsOfText(wide.LoadWhole(TrainRound(3))) == RowsOfText(narrow.LoadWhole(TrainRound(3))));
}

TEST_CASE("an evaluation reads the held-out file in order, empty beyond its end", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  CHECK(source.held_out_size() == 5);
  CHECK(source.train_size() == 13);
  CHECK(RowsOfText(*source.Load("language", 0, EvaluationRound(2), 0)) == std::vector<int>{13, 14});
  CHECK(RowsOfText(*source.Load("language", 0, EvaluationRound(2), 1)) == std::vector<int>{17, -1});
  const auto empty = source.Load("language", 1, EvaluationRound(2), 1);
  CHECK(empty->tokens.shape() == Shape{2, 1});
  CHECK(empty->tokens.as<std::int64_t>()[0] == 258);
  CHECK(empty->labels.as<std::int64_t>()[0] == -100);
  CHECK(empty->positions.at("vision").shape() == Shape{0});
  CHECK(source.Load("vision", 2, EvaluationRound(2), 1)->images.at("vision").shape() ==
        Shape{0, 3, kSize, kSize});
}

TEST_CASE("the samples of a unit are called by their rows' ids, in row order", "[data]") {
  using Names = std::vector<std::string>;
  const DataSet data;
  const LlavaSource source(Disjoint(data));
  CHECK(source.NamesOf("language", 0, EvaluationRound(2), 0) == Names{"r13", "r14"});
  CHECK(source.NamesOf("language", 0, EvaluationRound(2), 1) == Names{"r17"});
  CHECK(source.NamesOf("language", 1, EvaluationRound(2), 1).empty());
  CHECK(source.NamesOf("vision", 0, TrainRound(3), 1) ==
        Names{"r" + std::to_string(ExpectedRow(3, 4))});
  CHECK(source.NamesOf("nothing", 0, EvaluationRound(2), 0).empty());
}

TEST_CASE("the valid tokens of a round are those its shards hold", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  for (const Round& round : {TrainRound(0), TrainRound(7), EvaluationRound(2)}) {
    std::int64_t expected = 0;
    for (std::int64_t microbatch = 0; microbatch < round.microbatches; ++microbatch) {
      for (int dp = 0; dp < 2; ++dp) {
        const auto inputs = source.Load("language", dp, round, microbatch);
        const auto* labels = inputs->labels.as<std::int64_t>();
        const std::int64_t size = inputs->labels.num_elements();
        expected += size - std::count(labels, labels + size, -100);
      }
    }
    CHECK(source.CountValidTokens(round) == expected);
    CHECK(source.CountValidTokens(round) == expected);
    CHECK(expected > 0);
  }
}

TEST_CASE("two encoders of one field each get their own placeholders", "[data]") {
  const DataSet data;
  const auto detail_file = data.folder().Write(
      "two.json", R"([{"id": "a", "image": "1_0.png", "detail": ["2_0.png", "2_1.png"],
        "conversations": [{"from": "human", "value": "<detail>?<image><detail>"},
                          {"from": "gpt", "value": "7"}]}])");
  Config config = Disjoint(data);
  ModuleConfig detail = Vit("detail", {7}, 1);
  detail.input = InputConfig{"detail", "<detail>"};
  detail.vit.patch_size = 4;  // one row per image
  config.modules.insert(config.modules.begin(), detail);
  config.edges.push_back({"detail", "language", std::nullopt, 4});
  config.data.train = detail_file;
  LlavaSource source(config);
  const auto inputs = source.Load("language", 0, TrainRound(0), 0);
  const auto* tokens = inputs->tokens.as<std::int64_t>();
  // bos, detail (the first encoder of the file), ?, four rows of vision, detail
  const std::vector<std::int64_t> expected = {256, 259, '?', 260, 260, 260, 260, 259, '\n'};
  CHECK(std::vector<std::int64_t>(tokens, tokens + 9) == expected);
  CHECK(inputs->positions.at("detail").as<std::int64_t>()[1] == 7);
  CHECK(inputs->positions.at("vision").as<std::int64_t>()[0] == 3);
  const Inputs whole = source.LoadWhole(TrainRound(0));
  CHECK(Greys(whole.images.at("detail")).size() == 24);
  CHECK(Greys(whole.images.at("vision")).size() == 12);
}

TEST_CASE("many threads may load at once", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
  std::vector<int> agreed(4);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < agreed.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t step = 0; step < 5; ++step) {
        source.CountValidTokens(TrainRound(step));
        const auto inputs =
            source.Load("language", static_cast<int>(thread % 2), TrainRound(step), 0);
        agreed[thread] +=
            RowsOfText(*inputs)[0] == ExpectedRow(step, static_cast<std::int64_t>(thread % 2) * 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(agreed == std::vector<int>(4, 5));
}

TEST_CASE("an image that is missing or broken is named with its row", "[data]") {
  const DataSet data;
  const std::string held_out = data.folder() / "held_out.json";
  LlavaSource source(Disjoint(data));
  std::filesystem::remove(data.folder() / "13_0.png");
  CHECK_THROWS_WITH(
      source.LoadWhole(EvaluationRound(2)),
      held_out + ": row 0 (id \"r13\"): " + (data.folder() / "13_0.png") + ": no such file");
  data.folder().Write("13_0.png", "GIF89a");
  CHECK_THROWS_WITH(source.LoadWhole(EvaluationRound(2)),
                    held_out + ": row 0 (id \"r13\"): " + (data.folder() / "13_0.png") +
                        ": expected a jpeg or png, got a file of another format (gif): convert it "
                        "and correct the row");
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
  CHECK_NOTHROW(LlavaSource(config));
  const std::string gone = config.data.train +
                           ": row 10 (id \"r10\"): " + (data.folder() / "10_0.png") +
                           ": no such file";
  CHECK_THROWS_WITH(LlavaSource(config, ImageDepth::kHeader), gone);
  CHECK_THROWS_WITH(LlavaSource(config, ImageDepth::kDecode),
                    Catch::Contains("row 4 (id \"r4\"): ") && Catch::EndsWith("\n" + gone));
}

TEST_CASE("skipped rows are replaced by the next one, the same on every replica", "[data]") {
  const DataSet data;
  SpoilImages(data);
  std::filesystem::remove(data.folder() / "13_0.png");  // row 0 of the held-out file
  LlavaSource source(Disjoint(data), ImageDepth::kDecode, {.skip = true});
  CHECK(source.SkippedText() == "4, 10 of data.train, 0 of data.held_out");
  REQUIRE(source.skipped_lines().size() == 4);
  CHECK(source.skipped_lines()[3] ==
        "data.on_error = \"skip\": 3 rows are skipped; in training the next row of the file takes "
        "its place");
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
        const auto part = Greys(inputs->images.at("vision"));
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

TEST_CASE("more rows than data.skip_limit are not skipped", "[data]") {
  const DataSet data;
  SpoilImages(data);
  const Config config = Disjoint(data);
  CHECK_THROWS_WITH(LlavaSource(config, ImageDepth::kDecode, {.skip = true, .skip_limit = 1}),
                    Catch::EndsWith("\ndata.skip_limit: more than 1 rows cannot be used; `troupe "
                                    "data check` lists all"));
  CHECK_NOTHROW(LlavaSource(config, ImageDepth::kDecode, {.skip = true, .skip_limit = 2}));
}

TEST_CASE("a source that cannot be built says why", "[data]") {
  const DataSet data;
  Config config = Disjoint(data);
  config.modules[1].llama.vocab = 259;
  CHECK_THROWS_WITH(LlavaSource(config),
                    "modules.language.vocab: expected at least 260 for tokenizer \"bytes\" with 1 "
                    "placeholders, got 259");
  config = Disjoint(data);
  config.data.train = data.folder().Write("empty.json", "[]");
  CHECK_THROWS_WITH(LlavaSource(config),
                    config.data.train + ": expected at least one row, found none");
  config = Disjoint(data);
  config.data.held_out = "none.json";
  CHECK_THROWS_WITH(LlavaSource(config), "none.json: no such file");
  config = Disjoint(data);
  config.modules[1].llama.context = 5;
  CHECK_THROWS_WITH(LlavaSource(config),
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
  config.modules[1].llama.context = 40;
  config.data.train = data.folder().Write("long.json", "[" + row("a", question) + "]");
  CHECK_THROWS_WITH(LlavaSource(config),
                    config.data.train +
                        ": expected answers to learn from, no row has one within "
                        "the context of 40 tokens");
  config.data.train =
      data.folder().Write("mixed.json", "[" + row("a", question) + "," + row("b", "q") + "]");
  const LlavaSource source(config);
  CHECK(source.num_cut_rows() == 1);
}

TEST_CASE("modules, replicas and units that do not exist are refused", "[data]") {
  const DataSet data;
  LlavaSource source(Disjoint(data));
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
