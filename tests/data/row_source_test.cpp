// What a source brings to each replica of each module.
#include "data/row_source.hpp"

#include <algorithm>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/data/llava_set.hpp"

namespace troupe {
namespace {

TEST_CASE("every language replica gets its part of the microbatch, in order", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
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
        CHECK(inputs->fields.empty());
      }
    }
  }
}

TEST_CASE("where samples are cut, both ends of an edge know which token each row replaces",
          "[data]") {
  const DataSet data;
  Config config = MakeConfig(data, Vit("vision", {4}, 1), Llama({0, 1}, 1, 1));
  config.modules[1].layout.cp = 2;
  RowSource source(config);
  const auto inputs = source.Load("language", 0, TrainRound(1), 0);
  const RowTable& table = inputs->expected.at("vision");
  CHECK(source.Load("vision", 0, TrainRound(1), 0)->table == table);
  CHECK(inputs->table.rows == table.lengths);  // no padding
  const std::int64_t width = inputs->tokens.shape()[1];
  CHECK(*std::ranges::max_element(table.lengths) == width);
  std::vector<std::int64_t> places;
  for (const RowRun& run : table.runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      places.push_back(run.sample * width + run.place + i);
    }
  }
  const Buffer& positions = inputs->positions.at("vision");
  const auto* const first = positions.as<std::int64_t>();
  CHECK(places == std::vector<std::int64_t>(first, first + positions.num_elements()));
  CHECK_FALSE(places.empty());
}

TEST_CASE("a disjoint encoder gets the images of its own part of the microbatch", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
  // 4 samples among 3 replicas: 1, 1 and 2 of them.
  const std::vector<std::vector<std::int64_t>> parts = {{0}, {1}, {2, 3}};
  for (std::int64_t microbatch = 0; microbatch < 3; ++microbatch) {
    for (int dp = 0; dp < 3; ++dp) {
      const auto inputs = source.Load("vision", dp, TrainRound(1), microbatch);
      const auto& samples = parts[static_cast<std::size_t>(dp)];
      std::vector<int> rows;
      for (const std::int64_t n : samples) rows.push_back(ExpectedRow(1, microbatch * 4 + n));
      CHECK(inputs->table == RowTable{samples, RowCounts(rows)});
      CHECK(Greys(inputs->fields.at("vision")) == GreysOfRows(rows));
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
  RowSource source(Disjoint(data));
  CheckPositions(*source.Load("language", 1, TrainRound(0), 1));
  // Twelve samples of many lengths: most are followed by padding.
  CheckPositions(source.LoadWhole(TrainRound(0)));
}

TEST_CASE("text is padded to the longest sample of the shard", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
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
  RowSource source(config);
  for (std::int64_t window = 0; window < 2; ++window) {
    const std::int64_t length = window == 0 ? 2 : 1;  // of 3 microbatches
    for (int dp = 0; dp < 4; ++dp) {
      const auto inputs = source.Load("vision", dp, TrainRound(2), window);
      std::vector<std::int64_t> samples;
      std::vector<int> rows;
      for (std::int64_t m = 0; m < length; ++m) {
        samples.push_back(m * 4 + dp);
        rows.push_back(ExpectedRow(2, (window * 2 + m) * 4 + dp));
      }
      CHECK(inputs->table.samples == samples);
      CHECK(inputs->table.rows == RowCounts(rows));
      CHECK(Greys(inputs->fields.at("vision")) == GreysOfRows(rows));
    }
  }
  CHECK_THROWS_WITH(source.Load("vision", 0, TrainRound(0), 2),
                    "vision: expected a window in [0, 2), got 2");
}

TEST_CASE("an inline encoder's images come with the language model's text", "[data]") {
  const DataSet data;
  ModuleConfig vision = Vit("vision", {}, 1);
  vision.inline_in = "language";
  RowSource source(MakeConfig(data, vision, Llama({0, 1}, 1, 2)));
  for (int dp = 0; dp < 2; ++dp) {
    const auto inputs = source.Load("language", dp, TrainRound(0), 2);
    const auto rows = RowsOfText(*inputs);
    CHECK(Greys(inputs->fields.at("vision")) == GreysOfRows(rows));
    CHECK(inputs->expected.at("vision").rows == RowCounts(rows));
    CHECK(inputs->positions.at("vision").num_rows() == inputs->expected.at("vision").num_rows());
  }
  CHECK_THROWS_WITH(source.Load("vision", 0, TrainRound(0), 0),
                    "vision: expected a module that reads data by itself");
}

TEST_CASE("the whole round is the microbatches one behind the other", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
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
    CHECK(Greys(whole.fields.at("vision")) == GreysOfRows(rows));
    CHECK(whole.expected.at("vision").rows == RowCounts(rows));
    CHECK(whole.positions.at("vision").num_rows() == whole.expected.at("vision").num_rows());
    CHECK(whole.table.samples.back() == round.microbatches * 4 - 1);
  }
}

TEST_CASE("which rows a step sees does not depend on the layout", "[data]") {
  const DataSet data;
  RowSource wide(Disjoint(data));
  Config config = MakeConfig(data, Vit("vision", {1}, 1), Llama({0}, 1, 1));
  config.schedule.micro_batch_size = 4;
  RowSource narrow(config);
  CHECK(RowsOfText(wide.LoadWhole(TrainRound(3))) == RowsOfText(narrow.LoadWhole(TrainRound(3))));
}

TEST_CASE("an evaluation reads the held-out file in order, empty beyond its end", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
  CHECK(source.held_out_size() == 5);
  CHECK(source.train_size() == 13);
  CHECK(RowsOfText(*source.Load("language", 0, EvaluationRound(2), 0)) == std::vector<int>{13, 14});
  CHECK(RowsOfText(*source.Load("language", 0, EvaluationRound(2), 1)) == std::vector<int>{17, -1});
  const auto empty = source.Load("language", 1, EvaluationRound(2), 1);
  CHECK(empty->tokens.shape() == Shape{2, 1});
  CHECK(empty->tokens.as<std::int64_t>()[0] == 258);
  CHECK(empty->labels.as<std::int64_t>()[0] == -100);
  CHECK(empty->positions.at("vision").shape() == Shape{0});
  CHECK(source.Load("vision", 2, EvaluationRound(2), 1)->fields.at("vision").values.shape() ==
        Shape{0, 3, kImageSize, kImageSize});
}

TEST_CASE("the samples of a unit are called by their rows' ids, in row order", "[data]") {
  using Names = std::vector<std::string>;
  const DataSet data;
  RowSource source(Disjoint(data));
  CHECK(source.Load("language", 0, EvaluationRound(2), 0)->names == Names{"r13", "r14"});
  CHECK(source.Load("language", 0, EvaluationRound(2), 1)->names == Names{"r17"});
  CHECK(source.Load("language", 1, EvaluationRound(2), 1)->names.empty());
  CHECK(source.Load("vision", 0, TrainRound(3), 1)->names ==
        Names{"r" + std::to_string(ExpectedRow(3, 4))});
}

TEST_CASE("the valid tokens of a round are those its shards hold", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
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
    CHECK(source.Count(round).labels == expected);
    CHECK(source.Count(round).labels == expected);
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
  detail.As<VitConfig>().patch_size = 4;  // one row per image
  config.modules.insert(config.modules.begin(), detail);
  config.edges.push_back({"detail", "language", std::nullopt, 4});
  config.data.train = detail_file;
  RowSource source(config);
  const auto inputs = source.Load("language", 0, TrainRound(0), 0);
  const auto* tokens = inputs->tokens.as<std::int64_t>();
  // bos, detail (the first encoder of the file), ?, four rows of vision, detail
  const std::vector<std::int64_t> expected = {256, 259, '?', 260, 260, 260, 260, 259, '\n'};
  CHECK(std::vector<std::int64_t>(tokens, tokens + 9) == expected);
  CHECK(inputs->positions.at("detail").as<std::int64_t>()[1] == 7);
  CHECK(inputs->positions.at("vision").as<std::int64_t>()[0] == 3);
  const Inputs whole = source.LoadWhole(TrainRound(0));
  CHECK(Greys(whole.fields.at("detail")).size() == 24);
  CHECK(Greys(whole.fields.at("vision")).size() == 12);
}

TEST_CASE("grouped rows are the same in every layout, each once in an epoch", "[data]") {
  const DataSet data;
  Config config = Disjoint(data);
  config.data.group_by = GroupBy::kModalityLength;
  Config other = MakeConfig(data, Vit("vision", {1}, 1), Llama({0}, 1, 1));
  other.schedule.micro_batch_size = 4;
  other.data.group_by = GroupBy::kModalityLength;
  RowSource source(config);
  RowSource resumed(other);  // which begins at the last step
  REQUIRE(config.global_batch() == other.global_batch());
  const std::int64_t last = 12;  // 13 steps of 12 samples: 12 epochs of 13 rows
  CHECK(RowsOfText(source.LoadWhole(TrainRound(last))) ==
        RowsOfText(resumed.LoadWhole(TrainRound(last))));
  std::vector<int> seen(13);
  std::int64_t longest = 0;
  for (std::int64_t step = 0; step <= last; ++step) {
    const Inputs whole = source.LoadWhole(TrainRound(step));
    for (const int row : RowsOfText(whole)) ++seen.at(static_cast<std::size_t>(row));
    std::int64_t before = 1000;
    for (const StepShape& shape : source.ShapesOf(TrainRound(step))) {
      CHECK(shape.tokens <= before);
      before = shape.tokens;
      longest = std::max(longest, shape.tokens);
    }
  }
  CHECK(seen == std::vector<int>(13, 12));
  CHECK(longest > 1);
}

TEST_CASE("the shapes of a round's samples add up to what its shards hold", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
  const Inputs whole = source.LoadWhole(TrainRound(2));
  std::int64_t tokens = 0;
  std::int64_t labels = 0;
  std::int64_t images = 0;
  for (const StepShape& shape : source.ShapesOf(TrainRound(2))) {
    CHECK(shape.samples == 1);
    tokens += shape.tokens;
    labels += shape.labels;
    images += shape.lengths.at("vision");
  }
  CHECK(tokens == whole.num_tokens);
  CHECK(labels == source.Count(TrainRound(2)).labels);
  CHECK(images == std::ssize(whole.fields.at("vision").lengths));
}

TEST_CASE("many threads may load at once", "[data]") {
  const DataSet data;
  RowSource source(Disjoint(data));
  std::vector<int> agreed(4);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < agreed.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t step = 0; step < 5; ++step) {
        source.Count(TrainRound(step)).labels;
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

}  // namespace
}  // namespace troupe
