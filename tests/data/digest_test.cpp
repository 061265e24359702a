#include "data/digest.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/data/llava_set.hpp"

namespace troupe {

TEST_CASE("the digest of data is that of the files' bytes, wherever they lie", "[data]") {
  const ScratchFolder folder;
  folder.Write("model", "test");
  Config config;
  config.data.train = folder / "none.json";
  config.data.tokenizer = "sentencepiece:" + (folder / "model");
  const std::string lines = DataDigests(config);
  CHECK(lines == "data.tokenizer (contents) = sha256 9f86d081884c7d65\n");  // of sha256sum
  folder.Write("model", "tesT");
  CHECK(DataDigests(config) != lines);
}

TEST_CASE("the key of a format knows what tokens depend on, and nothing else", "[data]") {
  const ScratchFolder folder;
  folder.Write("model", "test");
  Config config;
  ModuleConfig vision = Vit("vision", {4}, 1);
  config.modules = {vision, Llama({0}, 1, 1)};
  config.data.tokenizer = "sentencepiece:" + (folder / "model");
  const std::string key = FormatKey(config, 100);
  CHECK(key.size() == 32);
  CHECK(FormatKey(config, 101) != key);
  const auto with = [&](const auto& change) {
    Config changed = config;
    change(changed);
    return FormatKey(changed, 100);
  };
  CHECK(with([](Config& c) { c.data.prompt = "plain"; }) != key);
  CHECK(with([](Config& c) { c.modules[0].input->field = "photo"; }) != key);
  CHECK(with([](Config& c) { c.modules[0].input->placeholder = "<photo>"; }) != key);
  CHECK(with([](Config& c) { c.modules[0].As<VitConfig>().patch_size = 1; }) != key);
  CHECK(with([](Config& c) { c.modules[0].As<VitConfig>().image_recipe.fit = ImageFit::kPad; }) !=
        key);
  CHECK(with([](Config& c) { c.modules[0].layout.dp = 4; }) == key);
  CHECK(with([](Config& c) { c.modules[1].As<LlamaConfig>().layers = 99; }) == key);
  CHECK(with([](Config& c) { c.run.seed = 99; }) == key);
  std::filesystem::copy(folder / "model", folder / "same");
  const std::string same = "sentencepiece:" + (folder / "same");
  CHECK(with([&](Config& c) { c.data.tokenizer = same; }) == key);
  folder.Write("model", "tesT");
  CHECK(FormatKey(config, 100) != key);
}

}  // namespace troupe
