#include "modules/torch/generator.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "answers/answerer.hpp"
#include "checkpoint/weights_folder.hpp"
#ifdef TROUPE_HAS_CUDA
#include "gpu/device.hpp"
#endif
#include "tests/torch/oracle.hpp"

namespace troupe::oracle {
namespace {

constexpr double kExact = 1e-10;

const std::vector<std::string> kLanguageFamilies = {
    "llama", "llama_tied", "llama_biased", "llama_linear", "llama3",   "mistral",
    "qwen2", "qwen3",      "mixtral",      "qwen2_moe",    "qwen3_moe"};

std::vector<std::string> AllFamilies() {
  std::vector<std::string> families = kLanguageFamilies;
  for (const char* vision : {"clip", "siglip"}) {
    for (const char* language : {"llama", "mistral", "qwen2", "qwen3"}) {
      families.push_back(std::string("llava_") + vision + "_" + language);
    }
  }
  for (const char* const next : {"llava_next_clip_llama", "llava_next_siglip_qwen2"}) {
    families.emplace_back(next);
  }
  return families;
}

/// What transformers has answered (tools/oracle/record_answers.py).
const SafetensorsReader& Recorded() {
  static const SafetensorsReader file("tests/oracle/answers.safetensors");
  return file;
}

std::vector<std::int64_t> Numbers(const std::string& name) {
  const Buffer buffer = Recorded().Read(name);
  const auto* values = buffer.as<std::int64_t>();
  return {values, values + buffer.num_elements()};
}

Config WholeConfig(const std::string& family) {
  const bool whole = family.starts_with("llava");
  Config config =
      Load(family, whole ? "cluster.ranks = 2\nmodel.from = \"hf:FAMILY\"\n[modules.vision]\n"
                           "ranks = \"0\"\n[modules.language]\nranks = \"1\"\n"
                           "[[edges]]\nfrom = \"vision\"\nto = \"language\"\n"
                         : "cluster.ranks = 1\n[modules.language]\nweights = \"hf:FAMILY\"\n"
                           "ranks = \"0\"\n");
  for (ModuleConfig& module : config.modules) module.frozen = true;
  for (EdgeConfig& edge : config.edges) edge.through->frozen = true;
  return config;
}

std::unique_ptr<Generator> GeneratorOf(const std::string& family, TorchOptions options = {}) {
  const Config config = WholeConfig(family);
  auto generator = MakeGenerator(config, options);
  const std::vector<TensorPiece> parameters = generator->Parameters();
  ReadWeights(config, parameters);
  generator->SetParameters(parameters);
  return generator;
}

/// The first images of the family's recording stand at the image tokens.
Prompt PromptOf(const std::string& family, const std::vector<std::int64_t>& tokens) {
  Prompt prompt;
  prompt.tokens = tokens;
  if (std::ranges::count(tokens, kImageToken) == 0) return prompt;
  PlacedImages images = ImagesFor(family, tokens);
  prompt.items.push_back(
      {"vision", std::move(images.items), std::move(images.positions), std::move(images.newlines)});
  return prompt;
}

/// Its text is of no interest.
class NoTokenizer final : public Tokenizer {
 public:
  std::vector<TextToken> Encode(std::string_view) const override { return {}; }
  std::string Decode(std::span<const std::int64_t>) const override { return {}; }
  std::optional<std::int64_t> bos() const override { return std::nullopt; }
  std::int64_t eos() const override { return -1; }
  std::int64_t pad() const override { return -1; }
  std::int64_t placeholder(int) const override { return kImageToken; }
  std::int64_t size() const override { return 32; }
};

/// Checks the answers to all prompts of a family.
void CheckAnswers(const std::string& family, const TorchOptions& options, int batch) {
  INFO(family);
  std::vector<std::string> names;
  for (int i = 0; Recorded().Find(family + "/" + std::to_string(i) + "/tokens") != nullptr; ++i) {
    names.push_back(family + "/" + std::to_string(i));
  }
  REQUIRE(names.size() >= 5);
  const auto generator = GeneratorOf(family, options);
  AnswerSettings settings;
  settings.max_new_tokens = std::ssize(Numbers(names[0] + "/answer"));
  settings.batch = batch;
  std::size_t num_answers = 0;
  WriteAnswers(
      *generator, NoTokenizer(), settings, names.size(),
      [&](std::size_t i) { return PromptOf(family, Numbers(names[i] + "/tokens")); },
      [](std::size_t, const Answer&) {},
      [&](std::size_t i, const Answer& answer) {
        CHECK(answer.tokens == Numbers(names[i] + "/answer"));
        ++num_answers;
      });
  CHECK(num_answers == names.size());
}

TEST_CASE("120 answers are those of transformers, token for token", "[torch][oracle]") {
  CheckAnswers(GENERATE(from_range(AllFamilies())), {}, GENERATE(1, 3, 8));
}

TEST_CASE("on a device, too, answers are those of transformers", "[torch][oracle][gpu]") {
  TorchOptions options{.portable = true};  // without a device as one would compute
#ifdef TROUPE_HAS_CUDA
  if (gpu::NumDevices() > 0) options.device = 0;
#endif
  for (const std::string& family : AllFamilies()) CheckAnswers(family, options, 3);
}

TEST_CASE("logits with a cache are those of transformers without", "[torch][oracle]") {
  const std::string family = GENERATE(from_range(AllFamilies()));
  INFO(family);
  const auto generator = GeneratorOf(family);
  const std::vector<std::int64_t> answer = Numbers(family + "/0/answer");
  const Buffer wanted = Recorded().Read(family + "/0/logits");
  const auto vocabulary = static_cast<std::size_t>(wanted.shape()[1]);
  // Other sequences before and behind it, of other lengths; one ends.
  generator->Begin(PromptOf(family, Numbers(family + "/4/tokens")));
  generator->Begin(PromptOf(family, Numbers(family + "/3/tokens")));
  const auto check = [&](std::size_t step, const double* logits) {
    const auto* const row = wanted.as<double>() + step * vocabulary;
    CHECK(Difference({{"logits", {row, row + vocabulary}}},
                     {{"logits", {logits, logits + vocabulary}}}) < kExact);
  };
  check(0, generator->Begin(PromptOf(family, Numbers(family + "/0/tokens"))).as<double>());
  std::size_t place = 2;
  std::vector<std::int64_t> tokens = {5, 6, 0};
  for (std::size_t step = 1; step < answer.size(); ++step) {
    if (step == 9) {
      generator->End(0);
      place = 0;  // the last one takes its number
      tokens = {0, 7};
    }
    tokens[place] = answer[step - 1];
    check(step, generator->Extend(tokens).as<double>() + place * vocabulary);
  }
}

TEST_CASE("a long prompt passes in parts", "[torch]") {
  Config config = WholeConfig("qwen3");
  ModuleOf(config, "language").As<LlamaConfig>().context = 600;
  auto generator = MakeGenerator(config, {});
  const auto parameters = generator->Parameters();
  ReadWeights(config, parameters);
  generator->SetParameters(parameters);
  std::vector<std::int64_t> tokens;
  for (std::int64_t t = 0; t < 600; ++t) tokens.push_back(t * t % 29);
  const Buffer whole = generator->Begin({tokens, {}});
  generator->End(0);
  generator->Begin({{3, 4, 5}, {}});
  generator->Begin({{tokens.front()}, {}});
  Buffer last;
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    if (t == 300) generator->End(0);  // the other one takes its number
    last = generator->Extend(t < 300 ? std::vector{std::int64_t{6}, tokens[t]}
                                     : std::vector{tokens[t]});
  }
  const auto values = [](const Buffer& logits) {
    const auto* const begin = logits.as<double>();
    return std::map<std::string, std::vector<double>>{{"logits", {begin, begin + 32}}};
  };
  CHECK(Difference(values(whole), values(last)) < kExact);
}

TEST_CASE("what a generator cannot compute is refused", "[torch]") {
  const auto generator = GeneratorOf("llava_clip_llama");
  CHECK_THROWS_WITH(generator->Begin({{}, {}}),
                    "language: expected 1 to 128 tokens of a prompt, got 0");
  CHECK_THROWS_WITH(generator->Begin({std::vector<std::int64_t>(129, 1), {}}),
                    "language: expected 1 to 128 tokens of a prompt, got 129");
  CHECK_THROWS_WITH(generator->Begin({{32}, {}}), "language: expected tokens in [0, 32), got 32");
  Prompt prompt = PromptOf("llava_clip_llama", {1, 30, 30, 30, 30});
  prompt.items[0].positions.pop_back();
  CHECK_THROWS_WITH(generator->Begin(prompt),
                    "language: expected 3 rows of 8 from vision, one for each position, got 4 rows "
                    "of 8");
  prompt.items[0].encoder = "hearing";
  CHECK_THROWS_WITH(generator->Begin(prompt),
                    "language: expected items of its encoders, got some of hearing");
  CHECK_THROWS_WITH(generator->Extend(std::vector<std::int64_t>{1}),
                    "language: expected 0 tokens, got 1");
}

}  // namespace
}  // namespace troupe::oracle
