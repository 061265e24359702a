// Tokens and labels of LLaVA's and LLaVA-NeXT's own preprocessing: tools/oracle/record_prompts.py.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/rows/llava_row.hpp"
#include "data/sample.hpp"
#include "modules/stage_program.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kImage = -200;  // at an image, in the recordings

SampleFormat Format(const std::string& folder, PromptKind prompt) {
  return {.tokenizer = MakeTokenizer("hf:tests/oracle/tokenizers/" + folder, {"<image>"}),
          .fields = {RowField()},
          .items = {{[](const ItemFile&) { return PlacesInOrder(1, 1); }}},
          .context = 100'000,
          .prompt = prompt};
}

/// The labels of a recording as samples have them: each place predicts the next one.
Ids Shifted(const Ids& ids, const nlohmann::json& labelled) {
  Ids labels(ids.size(), kNoLabel);
  for (const auto& range : labelled) {
    for (std::size_t place = range.at(0); place < range.at(1); ++place) {
      if (place > 0) labels[place - 1] = ids[place];
    }
  }
  return labels;
}

/// Compares every row of a recording. Returns the number of rows.
int Compare(const std::string& name, const SampleFormat& format) {
  const RowOrigin set{name};
  std::istringstream lines(BytesOf("tests/oracle/prompts/" + name + ".jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const nlohmann::json value = nlohmann::json::parse(line);
    LlavaRow row;
    ReadRow(value, format.fields, row);
    const Sample sample = BuildSample(set, row, format);
    Ids ids = value.at("ids");
    const Ids labels = Shifted(ids, value.at("labelled"));
    std::ranges::replace(ids, kImage, format.tokenizer->placeholder(0));
    INFO(name << " " << count << ": " << value.at("conversations"));
    CHECK(sample.tokens == ids);
    CHECK(sample.labels == labels);
  }
  return count;
}

TEST_CASE("plain and vicuna_v1 give the tokens and labels of LLaVA", "[data]") {
  CHECK(Compare("plain", Format("vicuna", PromptKind::kPlain)) == 200);
  CHECK(Compare("vicuna_v1", Format("vicuna", PromptKind::kVicunaV1)) == 200);
  CHECK(Compare("vicuna_v1_legacy", Format("llama2", PromptKind::kVicunaV1)) == 50);
}

TEST_CASE("llama3 and chatml give the tokens and labels of LLaVA-NeXT", "[data]") {
  CHECK(Compare("llama3", Format("llama3", PromptKind::kLlama3)) == 200);
  CHECK(Compare("chatml", Format("qwen2", PromptKind::kChatml)) == 200);
}

}  // namespace
}  // namespace troupe
