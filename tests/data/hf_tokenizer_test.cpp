// Tokenizers as `tokenizers` 0.22.2 writes and runs them: tools/oracle/record_tokenizers.py.
#include "data/text/hf_tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Ids = std::vector<std::int64_t>;

const std::string kRecorded = "tests/oracle/tokenizers/";

nlohmann::json ReadJsonFile(const std::string& path) {
  return nlohmann::json::parse(BytesOf(path));
}

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<std::string> Texts() {
  const nlohmann::json file = ReadJsonFile(kRecorded + "texts.json");
  std::vector<std::string> texts;
  for (const auto& text : file.at("texts")) texts.push_back(FromHex(text));
  return texts;
}

Ids IdsOf(const std::vector<TextToken>& tokens) {
  Ids ids;
  for (const TextToken& token : tokens) ids.push_back(token.id);
  return ids;
}

std::shared_ptr<const Tokenizer> Open(const std::string& name) {
  return OpenHfTokenizer(kRecorded + name, {"<image>"});
}

TEST_CASE("tokens and texts are those of tokenizers for every family", "[data]") {
  const std::vector<std::string> texts = Texts();
  REQUIRE(texts.size() == 140);
  for (const char* name : {"gpt2", "llama2", "llama3", "nfkc", "qwen2", "vicuna"}) {
    const auto tokenizer = Open(name);
    const nlohmann::json expected = ReadJsonFile(kRecorded + name + "/expected.json");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO(name << " " << i << ": " << texts[i]);
      const Ids ids = expected.at("ids").at(i);
      CHECK(IdsOf(tokenizer->Encode(texts[i])) == ids);
      CHECK(tokenizer->Decode(ids) == expected.at("decoded").at(i));
    }
  }
}

TEST_CASE("the places of tokens lie in the text, in order", "[data]") {
  for (const char* name : {"gpt2", "llama2", "llama3", "nfkc", "qwen2", "vicuna"}) {
    const auto tokenizer = Open(name);
    for (const std::string& text : Texts()) {
      INFO(name << ": " << text);
      std::size_t last = 0;
      for (const TextToken& token : tokenizer->Encode(text)) {
        CHECK(token.begin >= last);
        CHECK(token.end >= token.begin);
        CHECK(token.end <= text.size());
        last = token.begin;
      }
    }
  }
}

std::vector<std::string> PlacesOf(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::string> places;
  for (const TextToken& token : tokenizer.Encode(text)) {
    places.push_back(text.substr(token.begin, token.end - token.begin));
  }
  return places;
}

TEST_CASE("tokens know which bytes they stand for when the text is changed first", "[data]") {
  // NFC joins e and the accent; U+212B becomes a letter with a ring.
  const std::string text = "z e\xcc\x81 \xe2\x84\xabz";
  std::string joined;
  for (const std::string& place : PlacesOf(*Open("qwen2"), text)) {
    if (!joined.ends_with(place) || place.size() == 1) joined += place;
  }
  CHECK(joined == text);
  // Marks stand for spaces, and the one before the text for nothing.
  joined.clear();
  for (const std::string& place : PlacesOf(*Open("llama2"), " two  cats")) joined += place;
  CHECK(joined == " two  cats");
  CHECK(Open("llama2")->Encode("cats").front().begin == 0);
}

TEST_CASE("special tokens in a text are text", "[data]") {
  const auto tokenizer = Open("qwen2");
  const std::int64_t end = tokenizer->special("<|im_end|>").value();
  CHECK(tokenizer->eos() == end);
  const Ids ids = IdsOf(tokenizer->Encode("a<|im_end|>b<image>"));
  CHECK(std::ranges::count(ids, end) == 0);
  CHECK(std::ranges::count(ids, tokenizer->placeholder(0)) == 0);
  CHECK(tokenizer->Decode(ids) == "a<|im_end|>b<image>");
  // Others are tokens wherever they stand.
  CHECK(IdsOf(tokenizer->Encode("<think>")) == Ids{*tokenizer->special("<think>")});
}

TEST_CASE("a text after a special token has no mark before it where the model has none", "[data]") {
  const auto vicuna = Open("vicuna");
  const Ids first = IdsOf(vicuna->Encode("USER:"));
  const Ids later = IdsOf(vicuna->EncodeAfterSpecial("USER:"));
  CHECK(first.size() == later.size() + 1);
  const auto legacy = Open("llama2");
  CHECK(IdsOf(legacy->Encode("USER:")) == IdsOf(legacy->EncodeAfterSpecial("USER:")));
}

TEST_CASE("placeholders and pad that a folder lacks follow its tokens, in that order", "[data]") {
  const auto vicuna = OpenHfTokenizer(kRecorded + "vicuna", {"<image>", "<audio>"});
  CHECK(vicuna->bos() == 1);
  CHECK(vicuna->eos() == 2);
  CHECK(vicuna->placeholder(0) == 1000);
  CHECK(vicuna->placeholder(1) == 1001);
  CHECK(vicuna->pad() == 1002);
  CHECK(vicuna->size() == 1003);
  // Qwen has a pad_token and no bos; "<think>" is one of its tokens.
  const auto qwen = OpenHfTokenizer(kRecorded + "qwen2", {"<think>", "<image>"});
  CHECK_FALSE(qwen->bos().has_value());
  CHECK(qwen->pad() == qwen->special("<|endoftext|>"));
  CHECK(qwen->placeholder(0) == qwen->special("<think>"));
  CHECK(qwen->placeholder(1) == qwen->size() - 1);
  // Llama 3 names no add_bos_token; its post-processor adds the token.
  const auto llama3 = Open("llama3");
  CHECK(llama3->bos() == llama3->special("<|begin_of_text|>"));
}

TEST_CASE("a folder with a sentencepiece model gets its placeholders before pad", "[data]") {
  const ScratchFolder folder;
  folder.Write("tokenizer.model", BytesOf(kRecorded + "vicuna/tokenizer.model"));
  const auto tokenizer = MakeTokenizer("hf:" + folder.path(), {"<image>", "<audio>"});
  CHECK(tokenizer->placeholder(0) == 1000);
  CHECK(tokenizer->placeholder(1) == 1001);
  CHECK(tokenizer->pad() == 1002);
  CHECK(tokenizer->size() == 1003);
  // The library gives the tokens of the converted file.
  const nlohmann::json expected = ReadJsonFile(kRecorded + "llama2/expected.json");
  const std::vector<std::string> texts = Texts();
  for (std::size_t i = 8; i < 40; ++i) {
    INFO(texts[i]);
    CHECK(IdsOf(tokenizer->Encode(texts[i])) == expected.at("ids").at(i).get<Ids>());
  }
}

}  // namespace
}  // namespace troupe
