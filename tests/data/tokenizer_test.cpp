#include "data/text/tokenizer.hpp"

#include <bit>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

std::vector<std::int64_t> IdsIn(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const TextToken& token : tokenizer.Encode(text)) ids.push_back(token.id);
  return ids;
}

/// A sentencepiece model as its file format (protocol buffers) has it, so that no trainer is
/// needed: `pieces` are (text, kind), kind 1 normal, 2 unknown, 3 control.
std::string ModelFile(const std::vector<std::pair<std::string, int>>& pieces) {
  std::string model;
  // A protocol buffer field: tag, length, bytes.
  const auto field = [](char tag, const std::string& bytes) {
    std::string text(1, tag);
    text.push_back(static_cast<char>(bytes.size()));
    return text.append(bytes);
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& [text, kind] = pieces[i];
    std::string piece = field(0x0a, text);
    const auto score = std::bit_cast<std::uint32_t>(-static_cast<float>(i));
    piece += '\x15';
    for (int byte = 0; byte < 4; ++byte) piece += static_cast<char>(score >> (8 * byte) & 0xff);
    piece += '\x18';
    piece += static_cast<char>(kind);
    model += field(0x0a, piece);
  }
  return model;
}

const std::vector<std::pair<std::string, int>> kPieces = {
    {"<unk>", 2}, {"<s>", 3}, {"</s>", 3}, {"\xe2\x96\x81red", 1}, {"\xe2\x96\x81", 1}, {"cat", 1}};

TEST_CASE("the byte tokenizer gives every byte its own id and place", "[data]") {
  const auto tokenizer = MakeTokenizer("bytes", {"<image>", "<audio>"});
  const auto tokens = tokenizer->Encode("a\xc3\xa9\n");
  REQUIRE(tokens.size() == 4);
  CHECK(IdsIn(*tokenizer, "a\xc3\xa9\n") == std::vector<std::int64_t>{97, 0xc3, 0xa9, 10});
  CHECK(tokens[2].begin == 2);
  CHECK(tokens[2].end == 3);
  CHECK(IdsIn(*tokenizer, "").empty());
}

TEST_CASE("the byte tokenizer's other ids follow the bytes", "[data]") {
  const auto tokenizer = MakeTokenizer("bytes", {"<image>", "<audio>"});
  CHECK(tokenizer->bos() == 256);
  CHECK(tokenizer->eos() == 257);
  CHECK(tokenizer->pad() == 258);
  CHECK(tokenizer->placeholder(0) == 259);
  CHECK(tokenizer->placeholder(1) == 260);
  CHECK(tokenizer->size() == 261);
  CHECK(tokenizer->Decode(std::vector<std::int64_t>{256, 104, 259, 105, 257, 258}) == "hi");
}

TEST_CASE("placeholders in a text are never taken for placeholder tokens", "[data]") {
  const auto tokenizer = MakeTokenizer("bytes", {"<image>"});
  for (const std::int64_t id : IdsIn(*tokenizer, "<image>")) CHECK(id < 256);
}

TEST_CASE("a sentencepiece model's placeholders come after its pieces and a pad", "[data]") {
  const ScratchFolder folder;
  const auto file = folder.Write("words.model", ModelFile(kPieces));
  const auto tokenizer = MakeTokenizer("sentencepiece:" + file, {"<image>", "<audio>"});
  CHECK(tokenizer->bos() == 1);
  CHECK(tokenizer->eos() == 2);
  CHECK(tokenizer->pad() == 6);
  CHECK(tokenizer->placeholder(0) == 7);
  CHECK(tokenizer->placeholder(1) == 8);
  CHECK(tokenizer->size() == 9);
}

TEST_CASE("a sentencepiece model's own pad is used", "[data]") {
  const ScratchFolder folder;
  auto pieces = kPieces;
  pieces.emplace_back("<pad>", 3);
  const auto file = folder.Write("padded.model", ModelFile(pieces));
  const auto tokenizer = MakeTokenizer("sentencepiece:" + file, {"<image>"});
  CHECK(tokenizer->pad() == 6);
  CHECK(tokenizer->placeholder(0) == 7);
  CHECK(tokenizer->size() == 8);
}

TEST_CASE("sentencepiece tokens know which bytes of the text they stand for", "[data]") {
  const ScratchFolder folder;
  const auto file = folder.Write("words.model", ModelFile(kPieces));
  const auto tokenizer = MakeTokenizer("sentencepiece:" + file, {"<image>"});
  const auto tokens = tokenizer->Encode("red cat");
  CHECK(IdsIn(*tokenizer, "red cat") == std::vector<std::int64_t>{3, 4, 5});
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[0].begin == 0);
  CHECK(tokens[0].end == 3);
  CHECK(tokens[2].begin == 4);
  CHECK(tokens[2].end == 7);
  CHECK(tokenizer->Decode(std::vector<std::int64_t>{1, 3, 7, 4, 5, 2, 6}) == "red cat");
}

TEST_CASE("a tokenizer that cannot be had is named with the reason", "[data]") {
  const ScratchFolder folder;
  CHECK_THROWS_WITH(
      MakeTokenizer("byte", {"<image>"}),
      "tokenizer: expected \"bytes\", \"sentencepiece:FILE\" or \"hf:DIR\", got \"byte\"");
  CHECK_THROWS_WITH(MakeTokenizer("sentencepiece:none.model", {"<image>"}),
                    "none.model: no such file");
  const auto long_name = folder / std::string(300, 'x');
  CHECK_THROWS_WITH(MakeTokenizer("sentencepiece:" + long_name, {"<image>"}),
                    long_name + ": cannot be read: File name too long");
  const auto noise = folder.Write("noise.model", "this is no model");
  CHECK_THROWS_WITH(MakeTokenizer("sentencepiece:" + noise, {"<image>"}),
                    noise + ": expected a sentencepiece model, could not read it as one");
  const auto no_eos = folder.Write("no_eos.model", ModelFile({{"<unk>", 2}, {"<s>", 3}, {"a", 1}}));
  CHECK_THROWS_WITH(MakeTokenizer("sentencepiece:" + no_eos, {"<image>"}),
                    no_eos + ": expected a model with bos and eos, it has no eos");
}

}  // namespace
}  // namespace troupe
