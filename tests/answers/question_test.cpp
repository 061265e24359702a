#include "answers/question.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"
#include "tests/data/write_png.hpp"

namespace troupe {
namespace {

const std::vector<RowField> kFields = {RowField()};

std::vector<std::string> FaultsOf(const std::string& text) {
  const ScratchFolder folder;
  const std::string file = folder.Write("q.jsonl", text);
  try {
    ReadQuestions(file, "", kFields);
  } catch (const DataError& error) {
    std::vector<std::string> lines = error.lines();
    for (std::string& line : lines) line = line.substr(line.find("q.jsonl"));
    return lines;
  }
  return {};
}

TEST_CASE("questions are read with their images", "[answers]") {
  const ScratchFolder folder;
  const std::string file = folder.Write(
      "q.jsonl",
      "{\"question_id\": 7, \"image\": \"a/b.png\", \"text\": \"What?\", \"category\": \"x\"}\n\n"
      "{\"question_id\": \"n2\", \"image\": [\"c.png\", \"d.png\"], "
      "\"text\": \"<image> or <image>?\"}\n"
      "{\"question_id\": 9, \"text\": \"Why?\"}\n");
  const QuestionList list = ReadQuestions(file, "", kFields);
  REQUIRE(list.questions.size() == 3);
  CHECK(list.questions[0].id == "7");
  CHECK(list.questions[1].id == "\"n2\"");
  CHECK(list.questions[1].text == "<image> or <image>?");
  const LlavaRow& first = list.set.rows[0];
  CHECK(first.files == std::vector<std::vector<std::string>>{{"a/b.png"}});
  REQUIRE(first.turns.size() == 2);
  CHECK(first.turns[0].text == "<image>\nWhat?");
  CHECK(first.turns[1].open);
  CHECK(list.set.PathOf("a/b.png") == folder.path() + "/a/b.png");
  CHECK(list.set.rows[1].turns[0].text == "<image> or <image>?");
  CHECK(list.set.rows[1].files[0].size() == 2);
  CHECK(list.set.rows[2].turns[0].text == "Why?");
  CHECK(list.set.rows[2].files[0].empty());
  CHECK(ReadQuestions(file, "elsewhere", kFields).set.PathOf("a/b.png") == "elsewhere/a/b.png");
}

TEST_CASE("faults of questions are located", "[answers]") {
  CHECK(
      FaultsOf("{\"question_id\": 1, \"text\": \"a\"}\nnonsense\n{\"text\": \"b\"}\n"
               "{\"question_id\": 2}\n"
               "{\"question_id\": 3, \"text\": \"<image>\"}\n"
               "{\"question_id\": 4, \"text\": \"x\", \"image\": \"/etc/passwd\"}\n"
               "{\"question_id\": 5, \"text\": \"x\", \"image\": 3}\n") ==
      std::vector<std::string>{
          "q.jsonl:2: row 1: the question does not begin with '{'",
          "q.jsonl:3: row 2: question_id: expected a string or a whole number",
          "q.jsonl:4: row 3 (id \"2\"): text: expected a string",
          "q.jsonl:5: row 4 (id \"3\"): image: the number of files and of placeholders must be "
          "the same, got 0 in the field and 1 times \"<image>\" in the text",
          "q.jsonl:6: row 5 (id \"4\"): image: expected a relative path, got the absolute one "
          "\"/etc/passwd\": images lie below the list's folder; a link to theirs may lie there",
          "q.jsonl:7: row 6 (id \"5\"): image: expected a path or a list of paths, got a value of "
          "type number"});
  CHECK(FaultsOf("\n") ==
        std::vector<std::string>{"q.jsonl: expected a question a line, found none"});
  CHECK_THROWS_WITH(ReadQuestions("none.jsonl", "", kFields), "none.jsonl: no such file");
  const ScratchFolder folder;
  const std::string file =
      folder.Write("q.jsonl", R"({"question_id": 1, "text": "a", "image": "b.png"})");
  CHECK_THROWS_WITH(ReadQuestions(file, "", {}),
                    file + ":1: row 0 (id \"1\"): image: the model reads no images");
}

TEST_CASE("one question has its images before its text", "[answers]") {
  CHECK(OneQuestion("What?", {"a.png", "b.png"}, kFields).set.rows[0].turns[0].text ==
        "<image>\n<image>\nWhat?");
  CHECK(OneQuestion("A <image>?", {"a.png"}, kFields).set.rows[0].turns[0].text == "A <image>?");
  CHECK_THROWS_WITH(OneQuestion("<image>", {}, kFields),
                    "expected as many images as the prompt has \"<image>\", got 0 and 1");
  CHECK_THROWS_WITH(OneQuestion("What?", {"a.png"}, {}), "the model reads no images");
}

/// One row for each image.
SampleFormat FormatFor(std::int64_t context) {
  SampleFormat format = PlainFormat();
  format.items[0].places = [](const ItemFile&) { return PlacesInOrder(1, 3); };
  format.context = context;
  return format;
}

TEST_CASE("a prompt has the tokens and the pixels of its question", "[answers]") {
  const ScratchFolder folder;
  WritePng(folder.path() + "/a.png", {.width = 1, .height = 1, .pixels = {255, 0, 128}});
  QuestionList list = OneQuestion("Hm?", {folder.path() + "/a.png"}, kFields);
  list.set.file = "--prompt";
  const Prompt prompt = PromptOfQuestion(list, 0, FormatFor(100), {"vision"});
  // bos, three rows, "\nHm?" and the line end of the format "lines", and nothing of the answer.
  CHECK(prompt.tokens == std::vector<std::int64_t>{256, 259, 259, 259, '\n', 'H', 'm', '?', '\n'});
  REQUIRE(prompt.items.size() == 1);
  CHECK(prompt.items[0].encoder == "vision");
  CHECK(prompt.items[0].positions == std::vector<std::int64_t>{1, 2, 3});
  CHECK(prompt.items[0].items.values.shape() == Shape{1, 3, 1, 1});
  CHECK(prompt.items[0].items.values.as<float>()[1] == -1.0F);
  CHECK(PromptOfQuestion(list, 0, FormatFor(10), {"vision"}).tokens.size() == 9);
  CHECK_THROWS_WITH(
      PromptOfQuestion(list, 0, FormatFor(9), {"vision"}),
      "--prompt: row 0: expected fewer than 9 tokens, the context of the model, got 9");
  CHECK_NOTHROW(CheckQuestions(list, FormatFor(10)));
  CHECK_THROWS_WITH(
      CheckQuestions(list, FormatFor(9)),
      "--prompt: row 0: expected fewer than 9 tokens, the context of the model, got 9");
  list.set.rows[0].files[0][0] = "none.png";
  CHECK_THROWS_AS(CheckQuestions(list, FormatFor(100)), DataError);
  CHECK_THROWS_AS(PromptOfQuestion(list, 0, FormatFor(100), {"vision"}), DataError);
}

TEST_CASE("an answer is a line in LLaVA's form", "[answers]") {
  // The third is the first, asked again.
  const QuestionList list{.set = {},
                          .questions = {{"7", "What?"}, {"\"n\"", "What?"}, {"7", "What?"}}};
  const std::string line = AnswerLine(list, 0, "A \"cat\"\nand\xff", "mine");
  CHECK(line.back() == '\n');
  CHECK(std::ranges::count(line, '\n') == 1);
  const auto json = nlohmann::ordered_json::parse(line);
  CHECK(json["question_id"] == 7);
  CHECK(json["prompt"] == "What?");
  CHECK(json["text"] == "A \"cat\"\nand\xef\xbf\xbd");
  CHECK(json["model_id"] == "mine");
  CHECK(json["metadata"].empty());
  CHECK(json["answer_id"].get<std::string>().size() == 22);
  CHECK(json.begin().key() == "question_id");
  CHECK(AnswerLine(list, 1, "", "mine").find("\"question_id\":\"n\"") != line.npos);
  CHECK(AnswerLine(list, 2, "A \"cat\"\nand\xff", "mine")
            .find(json["answer_id"].get<std::string>()) == line.npos);
}

}  // namespace
}  // namespace troupe
