// Rows of WebDataset's archives.
#include <catch2/catch.hpp>

#include "tests/data/read_llava.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/data/write_tar.hpp"

namespace troupe {
namespace {

const std::vector<RowField> kImages = {{{"image", "<image>"}}};
const std::vector<RowField> kImagesAndSound = {{{"image", "<image>"}},
                                               {{"audio", "<audio>"}, "sound"}};

std::string BytesOf(const ItemFile& file) {
  REQUIRE(file.bytes.has_value());
  return {file.bytes->begin(), file.bytes->end()};
}

ReadRows RowsOf(const ScratchFolder& folder, const std::string& bytes,
                const std::vector<RowField>& fields = kImages) {
  return ReadLlava(folder.Write("a.tar", bytes), fields);
}

std::string FaultOf(const TarWriter& tar, const std::vector<RowField>& fields = kImages) {
  const ScratchFolder folder;
  const ReadRows set = RowsOf(folder, tar.Bytes(), fields);
  REQUIRE(set.faults.size() == 1);
  return set.faults[0].reason;
}

TEST_CASE("members with one key are a row", "[data]") {
  const ScratchFolder folder;
  TarWriter tar;
  tar.Add("set/", "", '5')
      .Add("set/000.jpg", "first image")
      .Add("set/000.txt", "a cat")
      .Add("set/001.json", R"({"conversations": [{"from": "human", "value": "<image>?"},
                                                 {"from": "gpt", "value": "a dog"}]})")
      .Add("set/001.png", std::string(700, 'd'))
      .Add("set/002.json", R"({"id": "own", "messages": [{"role": "user", "content": "hi"},
                                                         {"role": "assistant", "content": "ho"}]})");
  const ReadRows set = RowsOf(folder, tar.Bytes());
  REQUIRE(set.rows.size() == 3);
  CHECK(set.faults.empty());
  CHECK(set.rows[0].id == "set/000");
  CHECK(set.rows[0].turns[1].text == "a cat");
  const ItemFile image = set.rows[0].ItemOf(set, set.rows[0].files[0][0]);
  CHECK(BytesOf(image) == "first image");
  CHECK(image.name == folder / "a.tar" + ": set/000.jpg");
  CHECK(set.rows[1].id == "set/001");
  CHECK(BytesOf(set.rows[1].ItemOf(set, set.rows[1].files[0][0])) == std::string(700, 'd'));
  CHECK(set.rows[2].id == "own");
  CHECK(set.rows[2].files[0].empty());
}

TEST_CASE("a row may name its members, in any order, or have several of a field", "[data]") {
  const ScratchFolder folder;
  TarWriter tar;
  tar.Add("a.1.jpg", "one")
      .Add("a.2.jpg", "two")
      .Add("a.json", R"({"image": ["a.2.jpg", "1.jpg"], "caption": "x", "id": 7})")
      .Add("b.image.0.png", "zero")
      .Add("b.image.1.png", "one")
      .Add("b.audio.wav", "sound")
      .Add("b.json", R"({"conversations": [{"from": "human", "value": "<image><audio><image>"},
                                           {"from": "gpt", "value": "x"}]})");
  {
    // A caption needs one image; a list of two is refused as in a list of rows.
    const ReadRows set = RowsOf(folder, tar.Bytes());
    REQUIRE(set.faults.size() == 1);
  }
  const ReadRows set = RowsOf(folder, tar.Bytes(), kImagesAndSound);
  REQUIRE(set.rows.size() == 2);
  const LlavaRow& row = set.rows[1];
  REQUIRE(row.files[0].size() == 2);
  CHECK(BytesOf(row.ItemOf(set, row.files[0][0])) == "zero");
  CHECK(BytesOf(row.ItemOf(set, row.files[0][1])) == "one");
  CHECK(BytesOf(row.ItemOf(set, row.files[1][0])) == "sound");
  TarWriter parts;
  parts.Add("k.left.png", "l").Add("k.right.png", "r").Add("k.json", R"({"messages": [
      {"role": "user", "content": [{"type": "image", "image": "k.right.png"},
                                   {"type": "text", "text": "then"},
                                   {"type": "image", "image": "left.png"}]},
      {"role": "assistant", "content": "x"}]})");
  const ReadRows interleaved = RowsOf(folder, parts.Bytes());
  REQUIRE(interleaved.faults.empty());
  const LlavaRow& last = interleaved.rows[0];
  CHECK(BytesOf(last.ItemOf(interleaved, last.files[0][0])) == "r");
  CHECK(BytesOf(last.ItemOf(interleaved, last.files[0][1])) == "l");
}

TEST_CASE("an archive without its end is refused, one with long names is read", "[data]") {
  const ScratchFolder folder;
  TarWriter tar;
  tar.Add("a.jpg", "x").Add("a.txt", "a").Add("b.jpg", "y").Add("b.txt", "b");
  const ReadRows set = RowsOf(folder, tar.Unended());
  REQUIRE(set.faults.size() == 1);
  CHECK_THAT(set.faults[0].reason, Catch::Contains("may be cut short"));
  const std::string name(150, 'n');
  TarWriter gnu;  // a member of type L holds the name of the next one
  gnu.Add("a.jpg", "x").Add("a.txt", "a").Add("././@LongLink", name + ".jpg" + '\0', 'L');
  gnu.Add(name, "long").Add(name.substr(0, 90), "", '5');
  gnu.Add("././@LongLink", name + ".txt" + '\0', 'L').Add(name, "text");
  const ReadRows with_long = RowsOf(folder, gnu.Bytes());
  REQUIRE(with_long.rows.size() == 2);
  CHECK(with_long.faults.empty());
  CHECK(with_long.rows[1].id == name);
  CHECK(BytesOf(with_long.rows[1].ItemOf(with_long, "jpg")) == "long");
}

TEST_CASE("rows that must not be read are refused, and the others are read", "[data]") {
  using Catch::Contains;
  CHECK_THAT(FaultOf(TarWriter().Add("../a.jpg", "x").Add("../a.txt", "a")),
             Contains("without \"..\""));
  CHECK_THAT(FaultOf(TarWriter().Add("/a.jpg", "x").Add("/a.txt", "a")), Contains("relative path"));
  CHECK_THAT(FaultOf(TarWriter().Add("a.jpg", "", '2').Add("a.txt", "a")),
             Contains("regular file"));
  CHECK_THAT(FaultOf(TarWriter().Add("a.jpg", "x")), Contains("*.json or *.txt"));
  CHECK_THAT(FaultOf(TarWriter().Add("a.txt", "x").Add("a.txt", "y")), Contains("twice"));
  CHECK_THAT(FaultOf(TarWriter().Add("a.jpg", "x").Add("a.json", "{")), Contains("json"));
  CHECK_THAT(
      FaultOf(TarWriter().Add("a.jpg", "x").Add("a.json", R"({"image": "b.jpg", "caption": "c"})")),
      Contains("members of its row"));
  const ScratchFolder folder;
  TarWriter tar;
  tar.Add("a.jpg", "x").Add("a.txt", "a").Add("../b.jpg", "x").Add("../b.txt", "a");
  tar.Add("c.jpg", "x").Add("c.txt", "a");
  const ReadRows set = RowsOf(folder, tar.Bytes());
  CHECK(set.rows.size() == 3);
  REQUIRE(set.faults.size() == 1);
  CHECK(set.faults[0].row == 1);
}

TEST_CASE("an archive that is damaged ends where it cannot be followed", "[data]") {
  const ScratchFolder folder;
  TarWriter tar;
  tar.Add("a.jpg", "x").Add("a.txt", "a").Add("b.jpg", std::string(5000, 'y')).Add("b.txt", "b");
  const std::string bytes = tar.Bytes();
  std::string cut = bytes.substr(0, 512 * 6);  // within b.jpg
  const ReadRows set = RowsOf(folder, cut);
  REQUIRE_FALSE(set.faults.empty());
  CHECK(set.rows.size() <= 2);
  std::string damaged = bytes;
  damaged[512 * 4 + 150] = 'X';  // the checksum of b.jpg's header
  const ReadRows other = RowsOf(folder, damaged);
  REQUIRE_FALSE(other.faults.empty());
  CHECK(other.faults.back().kind == FaultKind::kFile);
  const ReadRows joined = RowsOf(folder, bytes + TarWriter().Add("z.txt", "z").Bytes());
  REQUIRE(joined.faults.size() == 1);
  CHECK_THAT(joined.faults[0].reason, Catch::Contains("after the end of the archive"));
  const ReadRows zipped = RowsOf(folder, "\x1f\x8b\x08" + std::string(600, 'z'));
  REQUIRE(zipped.faults.size() == 1);
  CHECK_THAT(zipped.faults[0].reason, Catch::Contains("not a usable tar archive"));
}

}  // namespace
}  // namespace troupe
