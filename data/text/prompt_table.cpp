#include "data/text/prompt_table.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr bool kLearned = true;

constexpr std::string_view kVicunaSystem =
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions.";
constexpr std::string_view kLlama3System =
    "You are a helpful language and vision assistant. You are able to understand the visual "
    "content "
    "that the user provides, and assist the user with a variety of tasks using natural language.";
constexpr std::string_view kChatmlSystem = "You are a helpful assistant.";

PromptPiece Verbatim(std::string_view text, bool learned = false) {
  return {PromptPiece::Kind::kWords, text, learned};
}
PromptPiece TurnText(bool learned = false) { return {PromptPiece::Kind::kTurn, {}, learned}; }
PromptPiece Bos() { return {PromptPiece::Kind::kBos}; }
PromptPiece Eos() { return {PromptPiece::Kind::kEos, {}, kLearned}; }
/// LLaVA-NeXT learns special tokens in every turn.
PromptPiece Special(std::string_view token) {
  return {PromptPiece::Kind::kSpecial, token, kLearned};
}

std::vector<PromptPiece> Llama3Turn(std::string_view role, bool learned = false) {
  return {Special("<|start_header_id|>"), Verbatim(role, learned), Special("<|end_header_id|>"),
          Verbatim("\n\n", learned),      TurnText(learned),       Special("<|eot_id|>")};
}

std::vector<PromptPiece> ChatmlTurn(std::string_view role, bool learned = false) {
  return {Special("<|im_start|>"), Verbatim(role, learned), Verbatim("\n", learned),
          TurnText(learned),       Special("<|im_end|>"),   Verbatim("\n", learned)};
}

}  // namespace

const std::vector<PromptFormat>& PromptFormats() {
  static const std::vector<PromptFormat> formats = {
      {.kind = PromptKind::kLines,
       .word = "lines",
       .beginning = {Bos()},
       .system = {TurnText(), Verbatim("\n")},
       .question = {TurnText(), Verbatim("\n")},
       .answer = {TurnText(kLearned), Eos()},
       .parts_turns = true},
      {.kind = PromptKind::kPlain,
       .word = "plain",
       .beginning = {Bos()},
       .question = {TurnText()},
       .answer = {TurnText(kLearned), Verbatim("\n", kLearned)},
       .items = ItemPlace::kAlone},
      {.kind = PromptKind::kVicunaV1,
       .word = "vicuna_v1",
       .beginning = {Bos()},
       .system = {TurnText(), Verbatim(" ")},
       .question = {Verbatim("USER: "), TurnText(), Verbatim(" ")},
       .answer = {Verbatim("ASSISTANT:"), Verbatim(" ", kLearned), TurnText(kLearned), Eos()},
       .system_text = kVicunaSystem,
       .items = ItemPlace::kFirstLine},
      {.kind = PromptKind::kLlama3,
       .word = "llama3",
       .beginning = {Special("<|begin_of_text|>")},
       .system = Llama3Turn("system"),
       .question = Llama3Turn("user"),
       .answer = Llama3Turn("assistant", kLearned),
       .system_text = kLlama3System,
       .items = ItemPlace::kFirstLineMoved,
       .strips = true},
      {.kind = PromptKind::kChatml,
       .word = "chatml",
       .system = ChatmlTurn("system"),
       .question = ChatmlTurn("user"),
       .answer = ChatmlTurn("assistant", kLearned),
       .system_text = kChatmlSystem,
       .items = ItemPlace::kFirstLineMoved,
       .always_learned = "\n"}};
  return formats;
}

const PromptFormat& PromptFormatOf(PromptKind kind) {
  return *std::ranges::find(PromptFormats(), kind, &PromptFormat::kind);
}

}  // namespace troupe
