#include "data/text/prompt.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

const std::vector<RowField> kFields = {{"image", "<image>"}, {"detail", "<d>"}};

/// Parts as text: ^ bos, $ eos, 0 and 1 items, special tokens as they are; learned ones in brackets.
std::string Show(PromptKind kind, const std::vector<Turn>& turns) {
  std::string text;
  bool learned = false;
  const auto add = [&](bool now, const std::string& piece) {
    if (now != learned) text += now ? '[' : ']';
    learned = now;
    text += piece;
  };
  for (const PromptPart& part : PromptParts(kind, turns, kFields)) {
    switch (part.kind) {
      case PromptPart::Kind::kBos:
        add(part.learned, "^");
        break;
      case PromptPart::Kind::kEos:
        add(part.learned, "$");
        break;
      case PromptPart::Kind::kItem:
        add(part.learned, std::to_string(part.field));
        break;
      default:
        add(part.learned, part.text);
    }
  }
  return learned ? text + ']' : text;
}

const std::vector<Turn> kTurns = {
    {false, "sys", true}, {false, "q1"}, {true, "a1"}, {false, "q2"}, {true, "a2"}};

TEST_CASE("every prompt format has its words, and learns the answers", "[data]") {
  CHECK(Show(PromptKind::kLines, kTurns) == "^sys\nq1\n[a1$]q2\n[a2$]");
  CHECK(Show(PromptKind::kPlain, {{false, "q<image>r"}, {true, "a1"}}) == "^0[a1\n]");
  CHECK(Show(PromptKind::kVicunaV1, kTurns) ==
        "^sys USER: q1 ASSISTANT:[ a1$]USER: q2 ASSISTANT:[ a2$]");
  CHECK(Show(PromptKind::kLlama3, {kTurns[0], kTurns[1], kTurns[2]}) ==
        "[<|begin_of_text|><|start_header_id|>]system[<|end_header_id|>]\n\nsys[<|eot_id|>"
        "<|start_header_id|>]user[<|end_header_id|>]\n\nq1[<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\na1<|eot_id|>]");
  CHECK(Show(PromptKind::kChatml, {kTurns[0], kTurns[1], kTurns[2]}) ==
        "[<|im_start|>]system\nsys[<|im_end|>]\n[<|im_start|>]user\nq1[<|im_end|>]\n"
        "[<|im_start|>assistant\na1<|im_end|>\n]");
}

TEST_CASE("a format's own system text stands where a row has none", "[data]") {
  CHECK(Show(PromptKind::kLines, {kTurns[1], kTurns[2]}) == "^q1\n[a1$]");
  CHECK(Show(PromptKind::kVicunaV1, {kTurns[1], kTurns[2]}).starts_with("^A chat between"));
  CHECK(Show(PromptKind::kChatml, {kTurns[1], kTurns[2]})
            .starts_with("[<|im_start|>]system\nYou are a helpful assistant.[<|im_end|>]\n"));
}

TEST_CASE("an image alone in its turn moves to the front as LLaVA moves it", "[data]") {
  const auto question = [](PromptKind kind, const std::string& text) {
    const std::string shown = Show(kind, {{false, "s", true}, {false, text}, {true, "a"}});
    const std::string begin = kind == PromptKind::kVicunaV1 ? "USER: " : "user\n";
    const std::size_t at = shown.find(begin) + begin.size();
    return shown.substr(at,
                        shown.find(kind == PromptKind::kVicunaV1 ? " ASS" : "[<|im_end", at) - at);
  };
  for (const PromptKind kind : {PromptKind::kVicunaV1, PromptKind::kChatml}) {
    CHECK(question(kind, "what <image> is\n") == "0\nwhat  is");
    CHECK(question(kind, "what\n<d>") == "1\nwhat");
    CHECK(question(kind, "<image>") == "0");
    CHECK(question(kind, "x<image>y<image>") == "x0y0");
  }
  CHECK(question(PromptKind::kVicunaV1, "<image> what ") == "0\nwhat");
  CHECK(question(PromptKind::kChatml, "<image> what ") == "0 what ");
}

TEST_CASE("llama3 strips white space, the wide kinds too", "[data]") {
  CHECK(Stripped("\n\xe3\x80\x80 a b\xc2\xa0\x1f\t") == "a b");
  CHECK(Stripped("\xe2\x80\x8a\xe2\x80\xa8").empty());
  CHECK(Stripped("\xe2\x80\x8b") == "\xe2\x80\x8b");
  const std::string shown = Show(PromptKind::kLlama3, {{false, " q "}, {true, "\n<image> a "}});
  CHECK(shown.find("\n\nq[<|eot_id|>") != std::string::npos);
  CHECK(shown.find("\n\n]0[\na<|eot_id|>") != std::string::npos);
}

TEST_CASE("plain takes one caption of an item only", "[data]") {
  const std::string begin =
      "data.prompt = \"plain\": expected a question with a placeholder and its answer, got ";
  CHECK_THROWS_WITH(PromptParts(PromptKind::kPlain, kTurns, kFields), begin + "5 turns");
  CHECK_THROWS_WITH(PromptParts(PromptKind::kPlain, {{false, "q"}, {true, "a"}}, kFields),
                    begin + "a question without one");
}

TEST_CASE("formats name the special tokens that they need", "[data]") {
  CHECK(SpecialTokensOf(PromptKind::kVicunaV1).empty());
  CHECK(SpecialTokensOf(PromptKind::kChatml) ==
        std::vector<std::string>{"<|im_start|>", "<|im_end|>"});
  CHECK(PromptOf("llama3") == PromptKind::kLlama3);
  CHECK_FALSE(PromptOf("auto").has_value());
}

}  // namespace
}  // namespace troupe
