#include "data/text/chat_template.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "data/text/tokenizer_config.hpp"
#include "files/sha256.hpp"

namespace troupe {
namespace {

struct KnownTemplate {
  std::string_view digest;
  PromptKind prompt;
};

/// Line ends inside Jinja's quotes are written as they are or as "\\n", with one meaning.
constexpr std::array<KnownTemplate, 9> kKnown = {{
    // llava-hf/llava-1.5, llava-1.6-vicuna
    {"6fef09c05345e88b9f85e80bcb3491003332050750586568bdf91cfa81965d0c", PromptKind::kVicunaV1},
    // the same, with line ends escaped
    {"50c43d0ac06b32ddd89668462d54ab30c7f75a36b3f1d876e82772b386c2c6f0", PromptKind::kVicunaV1},
    // Meta-Llama-3-Instruct
    {"4f46ecd43418f216df8c26936c60e5d04bcc81db47db5d86fbe889f64212dd4c", PromptKind::kLlama3},
    // the same, with line ends as they are
    {"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", PromptKind::kLlama3},
    // Qwen2-Instruct
    {"f0206845c9ebc3abb4735d44f286eb81ce99238ad2accc710c6fc60e6cb8ccc8", PromptKind::kChatml},
    // the same, with line ends as they are
    {"793202280c0910ab26bc6eb57c8212c2417324c6d8c4efd0d10d59092ab3e3eb", PromptKind::kChatml},
    // ChatML of transformers and LLaVA-NeXT
    {"fcf7a096fe99a48fd9ad2b250bf9237e96e8f48bffec1c7ea4d3f225176cd40e", PromptKind::kChatml},
    // the same, with line ends as they are
    {"153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3", PromptKind::kChatml},
    // Qwen3; it adds an empty <think> to the last answer
    {"87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5", PromptKind::kChatml},
}};

constexpr const char* kWords = "state data.prompt: plain, vicuna_v1, llama3 or chatml";

}  // namespace

std::optional<PromptKind> PromptOfTemplate(const std::string& text) {
  const std::string digest = Sha256Of(text);
  const auto found = std::ranges::find(kKnown, digest, &KnownTemplate::digest);
  if (found == kKnown.end()) return std::nullopt;
  return found->prompt;
}

PromptKind PromptOfFolder(const std::string& folder) {
  const std::optional<ChatTemplate> written = FindChatTemplate(folder);
  if (!written) throw std::runtime_error(folder + ": has no chat template; " + kWords);
  if (const auto prompt = PromptOfTemplate(written->text)) return *prompt;
  throw std::runtime_error(written->path + ": its chat template is not a known one (SHA-256 " +
                           Sha256Of(written->text).substr(0, 16) + "...); " + kWords);
}

}  // namespace troupe
