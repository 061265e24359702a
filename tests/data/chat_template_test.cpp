#include "data/text/chat_template.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include <catch2/catch.hpp>

#include "data/sample.hpp"
#include "tests/data/llava_set.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

const std::string kChatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}";

std::string ConfigWith(const nlohmann::json& chat_template) {
  return nlohmann::json{{"eos_token", "</s>"}, {"chat_template", chat_template}}.dump();
}

TEST_CASE("a published chat template is known to the byte", "[data]") {
  CHECK(PromptOfTemplate(kChatml) == PromptKind::kChatml);
  CHECK_FALSE(PromptOfTemplate(kChatml + " ").has_value());
}

TEST_CASE("a folder's template is found in each of its files", "[data]") {
  SECTION("as a text") {
    const ScratchFolder folder;
    folder.Write("tokenizer_config.json", ConfigWith(kChatml));
    CHECK(PromptOfFolder(folder.path()) == PromptKind::kChatml);
  }
  SECTION("in a list") {
    const ScratchFolder folder;
    folder.Write("tokenizer_config.json",
                 ConfigWith({{{"name", "tools"}, {"template", "x"}},
                             {{"name", "default"}, {"template", kChatml}}}));
    CHECK(PromptOfFolder(folder.path()) == PromptKind::kChatml);
  }
  SECTION("the processor's goes before the tokenizer's, the file in Jinja before both") {
    const ScratchFolder folder;
    folder.Write("tokenizer_config.json", ConfigWith("x"));
    folder.Write("chat_template.json", nlohmann::json{{"chat_template", kChatml}}.dump());
    CHECK(PromptOfFolder(folder.path()) == PromptKind::kChatml);
    folder.Write("chat_template.jinja", "y");
    CHECK_THROWS_WITH(PromptOfFolder(folder.path()),
                      folder / "chat_template.jinja" +
                          ": its chat template is not a known one (SHA-256 a1fce4363854ff88...); "
                          "state data.prompt: plain, vicuna_v1, llama3 or chatml");
  }
  SECTION("none") {
    const ScratchFolder folder;
    folder.Write("tokenizer_config.json", ConfigWith(nullptr));
    CHECK_THROWS_WITH(PromptOfFolder(folder.path()),
                      folder.path() +
                          ": has no chat template; state data.prompt: plain, "
                          "vicuna_v1, llama3 or chatml");
  }
}

TEST_CASE("a run's prompt is the stated one, else the tokenizer's, and needs its tokens",
          "[data]") {
  const DataSet data;
  Config config = Disjoint(data);
  LlamaConfig llama;
  llama.vocab = 2000;
  llama.context = 200;
  config.modules[1].model = llama;
  CHECK(FormatOf(config).prompt == PromptKind::kLines);
  config.data.prompt = "vicuna_v1";
  CHECK(FormatOf(config).prompt == PromptKind::kVicunaV1);

  config.data.tokenizer = "hf:tests/oracle/tokenizers/qwen2";
  config.data.prompt = "chatml";
  CHECK(FormatOf(config).prompt == PromptKind::kChatml);
  config.data.prompt = "auto";
  CHECK_THROWS_WITH(FormatOf(config),
                    Catch::StartsWith("tests/oracle/tokenizers/qwen2: has no chat "
                                      "template; state data.prompt: plain,"));
  config.data.prompt = "llama3";
  CHECK_THROWS_WITH(FormatOf(config),
                    "data.prompt = \"llama3\": expected a tokenizer with the special token "
                    "\"<|begin_of_text|>\", \"hf:tests/oracle/tokenizers/qwen2\" has none");
}

}  // namespace
}  // namespace troupe
