#include "data/sample.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/stage_program.hpp"

namespace troupe {
namespace {

const RowOrigin kSet{"set.json"};

ItemFormat RowsPerItem(std::int64_t rows) {
  return {[rows](const ItemFile&) { return PlacesInOrder(1, rows); }};
}

/// Two encoders of 3 and 2 rows per image, bytes as tokens.
class Builder {
 public:
  explicit Builder(std::int64_t context = 1000) {
    format_ = {tokenizer_,
               {{"image", "<image>"}, {"detail", "<d>"}},
               {RowsPerItem(3), RowsPerItem(2)},
               context};
  }
  Sample Build(const std::vector<Turn>& turns) {
    row_ = {5, "a7", {{"a.png", "b.png"}, {"c.png"}}, turns};
    return BuildSample(kSet, row_, format_);
  }
  const SampleFormat& format() const { return format_; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_ = MakeTokenizer("bytes", {"<image>", "<audio>"});
  SampleFormat format_;
  LlavaRow row_;
};

/// Tokens as text: bytes as they are, ^ bos, $ eos, _ pad, 0 and 1 placeholders, . no label.
std::string Show(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const std::int64_t id : ids) {
    if (id == kNoLabel) {
      text += '.';
    } else {
      text += id < 256 ? static_cast<char>(id == '\n' ? '|' : id) : "^$_01"[id - 256];
    }
  }
  return text;
}

std::string ShowFlags(const std::vector<std::uint8_t>& flags) {
  std::string text;
  for (const std::uint8_t flag : flags) text += flag != 0 ? '#' : '.';
  return text;
}

TEST_CASE("labels are the next token on answers and their ends, nowhere else", "[data]") {
  Builder builder;
  const Sample sample = builder.Build({{false, "<image>Hi?"}, {true, "a cat"}});
  CHECK(Show(sample.tokens) == "^000Hi?|a cat$");
  CHECK(Show(sample.labels) == ".......a cat$.");
  CHECK(ShowFlags(sample.content) == ".........###..");
  CHECK(sample.num_labels() == 6);
}

TEST_CASE("every turn ends in its own way, and labels skip the questions", "[data]") {
  Builder builder;
  const Sample sample =
      builder.Build({{false, "x"}, {true, "one"}, {false, "y"}, {true, "the two"}});
  CHECK(Show(sample.tokens) == "^x|one$y|the two$");
  CHECK(Show(sample.labels) == "..one$..the two$.");
  CHECK(ShowFlags(sample.content) == "..###.......###..");
}

TEST_CASE("every image takes its encoder's rows at its place in the text", "[data]") {
  Builder builder;
  const Sample sample = builder.Build({{false, "<d><image>?<image>"}, {true, "b"}});
  CHECK(Show(sample.tokens) == "^11000?000|b$");
  CHECK(sample.positions[0] == std::vector<std::int64_t>{3, 4, 5, 7, 8, 9});
  CHECK(sample.positions[1] == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("an image inside an answer is no label", "[data]") {
  Builder builder;
  const Sample sample = builder.Build({{false, "q"}, {true, "see<d>it"}});
  CHECK(Show(sample.tokens) == "^q|see11it$");
  CHECK(Show(sample.labels) == "..see..it$.");
}

TEST_CASE("a sample without images has no positions", "[data]") {
  Builder builder;
  const Sample sample = builder.Build({{false, "q"}, {true, "a"}});
  CHECK(sample.positions == std::vector<std::vector<std::int64_t>>(2));
}

TEST_CASE("text beyond the context is cut off, and the last token has no label", "[data]") {
  Builder builder(8);
  const Sample sample = builder.Build({{false, "<image>q"}, {true, "answer"}});
  CHECK(Show(sample.tokens) == "^000q|an");
  CHECK(Show(sample.labels) == ".....an.");
  CHECK(sample.content.size() == 8);
  Builder exact(13);
  CHECK(Show(exact.Build({{false, "<image>q"}, {true, "answer"}}).tokens) == "^000q|answer$");
}

TEST_CASE("a context that would cut an image is an error that names the sample", "[data]") {
  const std::vector<Turn> turns = {{false, "hello<image>"}, {true, "a"}};
  CHECK_THROWS_WITH(Builder(8).Build(turns),
                    "set.json: row 5 (id \"a7\"): the context of 8 tokens would cut an image, its "
                    "last row is token 9");
  CHECK(Show(Builder(9).Build(turns).tokens) == "^hello000");
}

TEST_CASE("an empty sample is one pad without a label", "[data]") {
  const Builder builder;
  const Sample sample = EmptySample(builder.format());
  CHECK(Show(sample.tokens) == "_");
  CHECK(Show(sample.labels) == ".");
  CHECK(sample.num_labels() == 0);
  CHECK(sample.positions.size() == 2);
}

TEST_CASE("content words are those that are not in the list of small words", "[data]") {
  CHECK(ShowFlags(ContentBytes("A red-hot cat, and THE there-fore")) ==
        "..###.###.###................####");
  CHECK(ShowFlags(ContentBytes("it caf\xc3\xa9 is 7 its")) == "...#####....#....");
  CHECK(ContentBytes("").empty());
}

}  // namespace
}  // namespace troupe
