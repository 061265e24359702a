#include "data/rows/llava.hpp"

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/data/read_llava.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

const std::vector<RowField> kEncoders = {{"image", "<image>"}, {"detail", "<detail>"}};

/// A row with the members of `fields` in front of a conversation that asks `question`.
std::string Row(const std::string& fields, const std::string& question) {
  return "{" + fields + R"(, "conversations": [{"from": "human", "value": ")" + question +
         R"("}, {"from": "gpt", "value": "yes"}]})";
}

/// Throws the first fault.
ReadRows ReadText(const ScratchFolder& folder, const std::string& text) {
  ReadRows set = ReadLlava(folder.Write("set.json", text), kEncoders);
  if (!set.faults.empty()) throw FaultError(set.file, set.faults.front());
  return set;
}

/// The error of a set whose only row is `row`, without the file's name.
std::string RowError(const std::string& row) {
  const ScratchFolder folder;
  const std::string error = ErrorOf([&] { ReadText(folder, "[" + row + "]"); });
  const std::string start = folder / "set.json: ";
  REQUIRE(error.substr(0, start.size()) == start);
  REQUIRE(error.find('\n') == std::string::npos);
  return error.substr(start.size());
}

TEST_CASE("a field may hold a path, a list of paths or nothing", "[data]") {
  const ScratchFolder folder;
  const ReadRows set =
      ReadText(folder, "[" + Row(R"("id": "one", "image": "a.png")", "<image>") + "," +
                           Row(R"("id": "two", "image": ["b.png", "c/d.png"], "detail": ["e.png"])",
                               "<image><detail> or <image>?") +
                           "," + Row(R"("id": 3)", "none?") + "," +
                           Row(R"("id": "four", "image": null, "detail": [])", "none?") + "]");
  REQUIRE(set.rows.size() == 4);
  using Files = std::vector<std::vector<std::string>>;
  CHECK(set.rows[0].files == Files{{"a.png"}, {}});
  CHECK(set.rows[1].files == Files{{"b.png", "c/d.png"}, {"e.png"}});
  CHECK(set.rows[2].files == Files{{}, {}});
  CHECK(set.rows[2].id == "3");
  CHECK(set.rows[3].files == Files{{}, {}});
  CHECK(set.rows[3].index == 3);
  CHECK(set.rows[1].turns[0].text == "<image><detail> or <image>?");
  CHECK_FALSE(set.rows[1].turns[0].answer);
  CHECK(set.rows[1].turns[1].answer);
}

TEST_CASE("image paths are relative to the folder of the JSON file", "[data]") {
  const ScratchFolder folder;
  const ReadRows set =
      ReadText(folder, "[" + Row(R"("id": "a", "image": "images/b.png")", "<image>") + "]");
  CHECK(set.PathOf(set.rows[0].files[0][0]) == folder / "images/b.png");
  CHECK(RowOrigin{"set.json"}.PathOf("b.png") == "b.png");
}

TEST_CASE("placeholders count in questions and answers alike", "[data]") {
  const ScratchFolder folder;
  const ReadRows set = ReadText(folder, R"([{"id": "a", "image": ["a", "b"], "conversations": [
      {"from": "human", "value": "<image>"}, {"from": "gpt", "value": "<image>"}]}])");
  CHECK(set.rows[0].files[0].size() == 2);
}

TEST_CASE("a number of placeholders that is not the number of files is refused", "[data]") {
  CHECK(RowError(Row(R"("id": "a7", "image": ["a.png", "b.png", "c.png"])", "<image> <image>")) ==
        "row 0 (id \"a7\"): image: the number of files and of placeholders must be the same, got 3 "
        "in the field and 2 times \"<image>\" in the text");
  CHECK(RowError(Row(R"("id": "a7")", "<detail>")) ==
        "row 0 (id \"a7\"): detail: the number of files and of placeholders must be the same, got "
        "0 in the field and 1 times \"<detail>\" in the text");
  CHECK(RowError(Row(R"("id": "a7", "image": "a.png")", "what?")) ==
        "row 0 (id \"a7\"): image: the number of files and of placeholders must be the same, got 1 "
        "in the field and 0 times \"<image>\" in the text");
}

TEST_CASE("paths that leave the folder of the data set are refused", "[data]") {
  const auto with_image = [](const std::string& path) {
    return RowError(Row(R"("id": "x", "image": ")" + path + "\"", "<image>"));
  };
  const std::string advice = ": images lie below the list's folder; a link to theirs may lie there";
  CHECK(with_image("/a.png") ==
        "row 0 (id \"x\"): image: expected a relative path, got the absolute one \"/a.png\"" +
            advice);
  for (const char* url : {"https://example.org/a.png", "data:image/png;base64,AAAA"}) {
    CHECK(with_image(url) == "row 0 (id \"x\"): image: expected a path, got the URL \"" +
                                 std::string(url) + "\": download it first");
  }
  for (const char* path : {"../a.png", "a/../../b.png", "a/..", ".."}) {
    CHECK(with_image(path) == "row 0 (id \"x\"): image: a path with \"..\" is not allowed: \"" +
                                  std::string(path) + "\"" + advice);
  }
  CHECK(with_image("") == "row 0 (id \"x\"): image: expected a path, got an empty one");
  CHECK(with_image("a\\u0000.png") ==
        "row 0 (id \"x\"): image: a path with a zero byte is not allowed");
}

TEST_CASE("a broken row is named with its place, its id and what is wrong", "[data]") {
  const auto turns = [](const std::string& list) {
    return RowError(R"({"id": "x", "conversations": )" + list + "}");
  };
  const std::string object = "row 0: expected an object like {id, image, conversations}, got ";
  CHECK(RowError("7") == object + "a value of type number");
  CHECK(RowError("[[]]") == object + "a value of type array");
  const std::string forms =
      "expected one of \"conversations\", \"messages\" and \"caption\", found ";
  CHECK(RowError("{}") == "row 0: " + forms + "none");
  const std::string expected = "row 0: id: expected a string or a whole number of 64 bits, got ";
  CHECK(RowError(R"({"id": null})") == expected + "null");
  CHECK(RowError(R"({"id": 123456789012345678901234567890})").starts_with(expected));
  CHECK(RowError(R"({"id": "x"})") == "row 0 (id \"x\"): " + forms + "none");
  CHECK(RowError(R"({"id": "x", "caption": "a", "messages": []})") ==
        "row 0 (id \"x\"): " + forms + "several");
  CHECK(turns("\"hello\"") ==
        "row 0 (id \"x\"): conversations: expected a list of turns, got the string \"hello\"");
  CHECK(turns("[]") ==
        "row 0 (id \"x\"): conversations: expected at least one turn from \"gpt\", found none");
  CHECK(turns("[3]") == "row 0 (id \"x\"): conversations: turn 0: expected {from, value}");
  CHECK(turns(R"([{"from": "gpt", "value": "a"}, {"from": "gpt"}])") ==
        "row 0 (id \"x\"): conversations: turn 1: \"value\" is missing");
  CHECK(turns(R"([{"from": "gpt", "value": 5}])") ==
        "row 0 (id \"x\"): conversations: turn 0: value: expected a string, got a value of type "
        "number");
  CHECK(turns(R"([{"from": "user", "value": "a"}])") ==
        "row 0 (id \"x\"): conversations: turn 0: from: expected \"human\", \"gpt\" or, in the "
        "first turn, \"system\", got \"user\"");
  CHECK(turns(R"([{"from": "gpt", "value": "a"}, {"from": "system", "value": "a"}])") ==
        "row 0 (id \"x\"): conversations: turn 1: from: expected \"human\", \"gpt\" or, in the "
        "first turn, \"system\", got \"system\"");
  CHECK(RowError(Row(R"("id": "x", "image": {"path": 1})", "<image>")) ==
        "row 0 (id \"x\"): image: expected a path or a list of paths, got a value of type object");
  CHECK(RowError(Row(R"("id": "x", "image": ["a", 1])", "<image>")) ==
        "row 0 (id \"x\"): image: expected a path or a list of paths, got a value of type number");
}

TEST_CASE("the place of a broken row counts from the file's start", "[data]") {
  const ScratchFolder folder;
  const std::string good = Row(R"("id": "good")", "well?");
  const std::string error =
      ErrorOf([&] { ReadText(folder, "[" + good + "," + good + R"(, {"id": "bad\nid"}])"); });
  CHECK(error == folder /
                     "set.json: row 2 (id \"bad\\nid\"): expected one of \"conversations\", "
                     "\"messages\" and \"caption\", found none");
}

TEST_CASE("a file that is no list of rows is refused in one line", "[data]") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& text) {
    const std::string whole = ErrorOf([&] { ReadText(folder, text); });
    CHECK(whole.find('\n') == std::string::npos);
    CHECK(whole.find("json.exception") == std::string::npos);
    CHECK(whole.substr(0, (folder / "set.json: ").size()) == folder / "set.json: ");
    return whole.substr((folder / "set.json: ").size());
  };
  const std::string no_list =
      "expected a list of rows, got something else; a file with one row a line is named *.jsonl";
  CHECK(error("{\"id\": 1}") == no_list);
  CHECK(error("3") == no_list);
  CHECK(error("").substr(0, 37) == "parse error at line 1, column 1: synt");
  CHECK(error("[{\"id\": \"a\"\n,]").substr(0, 31) == "parse error at line 2, column 2");
  CHECK(error("[\"\xff\"]").substr(0, 11) == "parse error");
  CHECK(error(std::string(100'000, '[')).find("nested too deeply") != std::string::npos);
  CHECK_THROWS_WITH(ReadLlava("none.json", kEncoders), "none.json: no such file");
  const std::string long_name = folder / std::string(300, 'x');
  CHECK_THROWS_WITH(ReadLlava(long_name, kEncoders),
                    long_name + ": cannot be read: File name too long");
  CHECK_THROWS_WITH(ReadLlava(folder.path(), kEncoders),
                    folder.path() + ": expected a file, got a directory");
}

TEST_CASE("an empty list is a set without rows", "[data]") {
  const ScratchFolder folder;
  CHECK(ReadText(folder, "[]").rows.empty());
}

TEST_CASE("text is cut at placeholders, the longest one first", "[data]") {
  const std::vector<RowField> encoders = {{"a", "<im"}, {"b", "<img>"}, {"c", "<x>"}};
  std::string cut;
  for (const TextPiece& piece : SplitAtPlaceholders("x<x>y <img><im> z<x>", encoders)) {
    cut += "[" + std::string(piece.text) + " " + std::to_string(piece.field) + "]";
  }
  CHECK(cut == "[x -1][<x> 2][y  -1][<img> 1][<im 0][> z -1][<x> 2]");
  CHECK(SplitAtPlaceholders("", encoders).empty());
}

}  // namespace
}  // namespace troupe
