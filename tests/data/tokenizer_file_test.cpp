#include "data/text/bpe/tokenizer_file.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include <catch2/catch.hpp>

#include "data/text/hf_tokenizer.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int64_t>;

/// A model of characters: "ab" merges before "bc", "abc" joins what "ab" and "c" leave.
json SmallFile() {
  return json::parse(R"({
    "added_tokens": [{"id": 9, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "unk_token": "?", "vocab":
      {"?": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "bc": 5, "abc": 6}, "merges": ["a b", "b c", "ab c"]}})");
}

/// Opens `file` with one value replaced.
class Opened {
 public:
  explicit Opened(const json& file) { folder_.Write("tokenizer.json", file.dump()); }
  static Opened With(const char* pointer, const json& value) {
    json file = SmallFile();
    file[json::json_pointer(pointer)] = value;
    return Opened(file);
  }

  bpe::TokenizerFile Open() const { return bpe::TokenizerFile(folder_ / "tokenizer.json"); }
  Ids Encode(const std::string& text) const {
    Ids ids;
    for (const TextToken& token : Open().Encode(text, true)) ids.push_back(token.id);
    return ids;
  }
  /// The error, without the folder.
  std::string Error() const {
    const std::string error = ErrorOf([&] { Open(); });
    return error.starts_with(folder_.path()) ? error.substr(folder_.path().size() + 1) : error;
  }

 private:
  ScratchFolder folder_;
};

TEST_CASE("pairs merge in the order of the list, and of equal ones the first", "[data]") {
  const Opened file(SmallFile());
  CHECK(file.Encode("abc") == Ids{6});
  CHECK(file.Encode("bcab") == Ids{5, 4});
  CHECK(file.Encode("bbcc") == Ids{2, 5, 3});
  CHECK(file.Encode("aaabab") == Ids{1, 1, 4, 4});
  CHECK(file.Encode("axxb") == Ids{1, 0, 0, 2});
  CHECK(Opened::With("/model/fuse_unk", true).Encode("axxb") == Ids{1, 0, 2});
  CHECK(Opened::With("/model/unk_token", nullptr).Encode("axb") == Ids{4});
}

TEST_CASE("a long word takes time in proportion to its length", "[data]") {
  const Opened file(SmallFile());
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "abc"[i % 3];
  CHECK(file.Encode(text).size() == 100'000);
}

TEST_CASE("what is not supported in a tokenizer.json is refused with its place", "[data]") {
  const auto error = [](const char* pointer, const json& value) {
    return Opened::With(pointer, value).Error();
  };
  CHECK(error("/model/type", "Unigram") ==
        "tokenizer.json: model.type: expected BPE, the only model that is supported, got "
        "\"Unigram\"");
  CHECK(error("/model/dropout", 0.1) ==
        "tokenizer.json: model.dropout: expected none: it is not supported, got 0.1");
  CHECK(error("/model/end_of_word_suffix", "</w>") ==
        "tokenizer.json: model.end_of_word_suffix: expected none: it is not supported, got "
        "\"</w>\"");
  CHECK(error("/normalizer", json{{"type", "Lowercase"}}) ==
        "tokenizer.json: normalizer.type: expected Sequence, NFC, NFD, NFKC, NFKD, Prepend or "
        "Replace, got \"Lowercase\"");
  CHECK(error("/pre_tokenizer",
              json{{"type", "Sequence"}, {"pretokenizers", {{{"type", "Whitespace"}}}}}) ==
        "tokenizer.json: pre_tokenizer.pretokenizers[0].type: expected Sequence, Split, ByteLevel "
        "or Metaspace, got \"Whitespace\"");
  CHECK(error("/decoder", json{{"type", "WordPiece"}}) ==
        "tokenizer.json: decoder.type: expected Sequence, ByteLevel, ByteFallback, Fuse, Replace, "
        "Strip or Metaspace, got \"WordPiece\"");
}

TEST_CASE("a tokenizer.json that does not fit itself is refused with the place", "[data]") {
  const auto error = [](const char* pointer, const json& value) {
    return Opened::With(pointer, value).Error();
  };
  CHECK(error("/model/vocab/a", 4'194'304) ==
        "tokenizer.json: model.vocab.a: expected an id from 0 to 4194303, got 4194304");
  CHECK(error("/model/vocab/a", -1) ==
        "tokenizer.json: model.vocab.a: expected an id from 0 to 4194303, got -1");
  CHECK(error("/model/vocab/c", 2) == "tokenizer.json: model.vocab: two tokens have the id 2");
  CHECK(error("/model/merges/1", "b x") ==
        "tokenizer.json: model.merges[1]: expected two tokens of model.vocab that join to a third "
        "one, got \"b x\"");
  CHECK(error("/model/merges/1", "bc") ==
        "tokenizer.json: model.merges[1]: expected two tokens with a space between them, got "
        "\"bc\"");
  CHECK(error("/model/merges/1", {"b", "c", "c"}) ==
        "tokenizer.json: model.merges[1]: expected two tokens, got a list");
  CHECK(error("/model/unk_token", "no") ==
        "tokenizer.json: model.unk_token: expected a token of model.vocab, got \"no\"");
  CHECK(error("/added_tokens/0/id", 1e9) ==
        "tokenizer.json: added_tokens[0].id: expected a whole number from 0 to 4194303, got "
        "1000000000.0");
  CHECK(error("/added_tokens/0/content", "") ==
        "tokenizer.json: added_tokens[0].content: expected 1 to 1024 bytes, got \"\"");
  CHECK(error("/decoder", nullptr) ==
        "tokenizer.json: expected the key \"decoder\", it is missing");
}

json SplitBy(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
}

TEST_CASE("a bad regular expression is refused, a slow one given up", "[data]") {
  CHECK(Opened::With("/pre_tokenizer", SplitBy("a(b")).Error() ==
        "tokenizer.json: pre_tokenizer.pattern: at character 3: missing closing parenthesis");
  const Opened slow = Opened::With("/pre_tokenizer", SplitBy("(a|aa)+$"));
  CHECK(slow.Encode("aaa") == Ids{1, 1, 1});
  CHECK_THROWS_AS(slow.Encode(std::string(200, 'a') + "b"), bpe::PatternError);
}

TEST_CASE("a normalizer that makes a text grow without end is given up", "[data]") {
  const json twice = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  const Opened grows = Opened::With(
      "/normalizer", {{"type", "Sequence"}, {"normalizers", json(std::vector<json>(30, twice))}});
  CHECK(Opened::With("/normalizer", twice).Encode("ab") == Ids{1, 4});
  CHECK_THROWS_WITH(grows.Encode(std::string(1000, 'a')),
                    "the normalizer of the tokenizer makes a text 32 times as long");
  json long_text = twice;
  long_text["content"] = std::string(1025, 'a');
  CHECK(Opened::With("/normalizer", long_text).Error() ==
        "tokenizer.json: normalizer.content: expected at most 1024 bytes, got 1025");
}

TEST_CASE("a broken tokenizer.json or tokenizer_config.json is named", "[data]") {
  const ScratchFolder folder;
  const auto error = [&] {
    const std::string text = ErrorOf([&] { OpenHfTokenizer(folder.path(), {"<image>"}); });
    return text.substr(std::min(text.size(), folder.path().size() + 1));
  };
  CHECK(error() == "tokenizer.json: no such file");
  folder.Write("tokenizer.json", "{\"model\":");
  CHECK(error() == "tokenizer.json: the file is not valid JSON at byte 10");
  folder.Write("tokenizer.json", SmallFile().dump());
  CHECK(error() == "tokenizer_config.json: no such file");
  folder.Write("tokenizer_config.json", "{}");
  CHECK(error() == "tokenizer_config.json: expected the key \"eos_token\", it is missing");
  folder.Write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  CHECK(error() ==
        "tokenizer_config.json: eos_token: expected a token of tokenizer.json, got "
        "\"</s>\"");
  folder.Write("tokenizer_config.json", R"({"eos_token": {"content": "<s>"}})");
  CHECK(error().empty());
}

}  // namespace
}  // namespace troupe
