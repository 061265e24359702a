// The forms of rows besides LLaVA's own, and lists with faults.
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/rows/llava.hpp"
#include "tests/data/read_llava.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

const std::vector<RowField> kOneEncoder = {{"image", "<image>"}};
const std::vector<RowField> kTwoEncoders = {{"image", "<image>"}, {"detail", "<detail>"}};

/// The only row of a list; its fault is thrown.
LlavaRow RowOf(const std::string& row, const std::vector<RowField>& encoders = kOneEncoder) {
  const ScratchFolder folder;
  const ReadRows set = ReadLlava(folder.Write("set.json", "[" + row + "]"), encoders);
  if (!set.faults.empty()) throw std::runtime_error(set.faults.front().reason);
  return set.rows.at(0);
}

/// "Q: text | A: text".
std::string Show(const LlavaRow& row) {
  std::string text;
  for (const Turn& turn : row.turns) {
    text += (text.empty() ? "" : " | ") + std::string(turn.answer ? "A: " : "Q: ") + turn.text;
  }
  return text;
}

TEST_CASE("messages with text or parts are rows like conversations", "[data]") {
  const LlavaRow text = RowOf(R"({"image": "a.png", "messages": [
      {"role": "system", "content": "Be short."},
      {"role": "user", "content": "<image>What?"}, {"role": "assistant", "content": "a cat"}]})");
  CHECK(Show(text) == "Q: Be short. | Q: <image>What? | A: a cat");
  CHECK(text.files[0] == std::vector<std::string>{"a.png"});
  CHECK(text.id.empty());

  const LlavaRow parts = RowOf(R"({"id": 7, "messages": [
      {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a.png"}},
                                   {"type": "text", "text": " or "},
                                   {"type": "image", "image": "b/c.png"}]},
      {"role": "assistant", "content": [{"type": "text", "text": "both"}]}]})");
  CHECK(Show(parts) == "Q: <image> or <image> | A: both");
  CHECK(parts.files[0] == std::vector<std::string>{"a.png", "b/c.png"});
  CHECK(parts.id == "7");

  const LlavaRow apart = RowOf(R"({"image": ["a.png"], "messages": [
      {"role": "user", "content": [{"type": "image"}]}, {"role": "assistant", "content": "yes"}]})");
  CHECK(apart.files[0] == std::vector<std::string>{"a.png"});
}

TEST_CASE("an image with a caption is a question without words and its answer", "[data]") {
  const LlavaRow row = RowOf(R"({"image": "a.png", "caption": "a cat"})");
  CHECK(Show(row) == "Q: <image> | A: a cat");
  CHECK(row.files[0] == std::vector<std::string>{"a.png"});
  CHECK_THROWS_WITH(RowOf(R"({"caption": "a cat"})"),
                    "image: the number of files and of placeholders must be the same, got 0 in the "
                    "field and 1 times \"<image>\" in the text");
}

TEST_CASE("what does not say which encoder it is for is refused", "[data]") {
  const std::string advice =
      " needs a model with one encoder, this one has 2: use \"conversations\" with a placeholder "
      "per encoder";
  CHECK_THROWS_WITH(RowOf(R"({"image": "a.png", "caption": "a"})", kTwoEncoders),
                    "\"caption\"" + advice);
  CHECK_THROWS_WITH(RowOf(R"({"messages": [{"role": "user", "content": [
                        {"type": "image", "image": "a.png"}]}]})",
                          kTwoEncoders),
                    "a part of type \"image\"" + advice);
}

TEST_CASE("image parts are for the one encoder that reads images", "[data]") {
  const std::vector<RowField> fields = {{"sound", "<sound>", "sound"}, {"image", "<image>"}};
  const LlavaRow row = RowOf(R"({"sound": "a.wav", "messages": [
      {"role": "user", "content": [{"type": "text", "text": "<sound>"},
                                   {"type": "image", "image": "a.png"}]},
      {"role": "assistant", "content": "a cat"}]})",
                             fields);
  CHECK(Show(row) == "Q: <sound><image> | A: a cat");
  CHECK(row.files == std::vector<std::vector<std::string>>{{"a.wav"}, {"a.png"}});
  CHECK_THROWS_WITH(
      RowOf(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})", {fields[0]}),
      "a part of type \"image\" needs a model with one encoder of images, this one "
      "has 0: use \"conversations\" with a placeholder per encoder");
  CHECK_THROWS_WITH(RowOf(R"({"sound": "/a.wav", "caption": "a"})", {fields[0]}),
                    "sound: expected a relative path, got the absolute one \"/a.wav\": sounds lie "
                    "below the list's folder; a link to theirs may lie there");
}

TEST_CASE("parts and roles that are not known are refused by name", "[data]") {
  const auto content = [](const std::string& parts) {
    return ErrorOf(
        [&] { RowOf(R"({"messages": [{"role": "user", "content": [)" + parts + "]}]}"); });
  };
  CHECK(content(R"({"type": "input_audio"})") ==
        "messages: turn 0: content: expected parts of type \"text\", \"image\" or \"image_url\", "
        "got \"input_audio\"");
  CHECK(content("3") ==
        "messages: turn 0: content: expected {type, ...}, got a value of type number");
  CHECK(content(R"({"type": "image_url", "image_url": {"url": "https://a.org/b.png"}})") ==
        "image_url: expected a path, got the URL \"https://a.org/b.png\": download it first");
  CHECK_THROWS_WITH(RowOf(R"({"messages": [{"role": "tool", "content": "a"}]})"),
                    "messages: turn 0: role: expected \"user\", \"assistant\" or, in the first "
                    "turn, \"system\", got \"tool\"");
}

TEST_CASE("a file of lines has a row a line, and a line that is not JSON is one fault", "[data]") {
  const ScratchFolder folder;
  const std::string good = R"({"image": "a.png", "caption": "a"})";
  const std::string text = good + "\n\n{\"id\": \"x\",\n" + good + "\r\n" +
                           std::string(100'000, '[') + "\n[1]\n" + good + "\n{\"id\": 1e999}\n";
  const ReadRows set = ReadLlava(folder.Write("set.jsonl", text), kOneEncoder);
  REQUIRE(set.rows.size() == 7);
  std::vector<std::string> faults;
  for (const DataFault& fault : set.faults) {
    faults.push_back(FaultLine("f", fault));
    CHECK(set.unusable.contains(fault.row));
  }
  CHECK(faults ==
        std::vector<std::string>{
            "f:3: row 1: not valid JSON at byte 12 of its line", "f:5: row 3: nested too deeply",
            "f:6: row 4: expected an object like {id, image, conversations}, got a value of type "
            "array",
            "f:8: row 6: number overflow parsing '1e999'"});
  CHECK_FALSE(set.unusable.contains(5));
}

TEST_CASE("all rows of a list are read, whatever some of them hold", "[data]") {
  const ScratchFolder folder;
  const ReadRows set = ReadLlava(
      folder.Write("set.json", R"([{"id": "a"}, {"image": "a.png", "caption": "a"}, 5, {"x":)"),
      kOneEncoder);
  CHECK(set.rows.size() == 3);
  REQUIRE(set.faults.size() == 3);
  CHECK(set.faults[0].kind == FaultKind::kRow);
  CHECK(set.faults[0].id == "a");
  CHECK(set.faults[1].row == 2);
  CHECK(set.faults[2].kind == FaultKind::kFile);
  CHECK(set.faults[2].reason.rfind("parse error at line 1, column", 0) == 0);
}

}  // namespace
}  // namespace troupe
