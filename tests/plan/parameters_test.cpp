#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "plan/stage_parts.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

const ParameterSpec& FindSpec(const std::vector<ParameterSpec>& specs, const std::string& name) {
  const auto found = std::ranges::find(specs, name, &ParameterSpec::name);
  INFO(name);
  REQUIRE(found != specs.end());
  return *found;
}

std::vector<std::string> Names(const Config& config, const std::string& module, int pp) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : StageParameters(config, module, pp)) names.push_back(spec.name);
  return names;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

TEST_CASE("parameters are named and shaped as the published models name them", "[modules]") {
  const Config config = SmallModulesConfig();
  const auto vision = StageParameters(config, "vision", 0);
  CHECK(FindSpec(vision, "vision.embeddings.class_embedding").shape == Shape{8});
  CHECK(FindSpec(vision, "vision.embeddings.patch_embedding.weight").shape == Shape{8, 3, 4, 4});
  CHECK(FindSpec(vision, "vision.embeddings.position_embedding.weight").shape == Shape{5, 8});
  CHECK(FindSpec(vision, "vision.pre_layrnorm.bias").shape == Shape{8});
  CHECK(FindSpec(vision, "vision.encoder.layers.1.mlp.fc1.weight").shape == Shape{12, 8});
  CHECK(FindSpec(vision, "vision_to_language.linear_1.weight").shape == Shape{12, 8});
  CHECK(FindSpec(vision, "vision_to_language.linear_2.weight").shape == Shape{16, 12});
  const auto language = StageParameters(config, "language", 0);
  CHECK(FindSpec(language, "audio_to_language.linear_1.bias").shape == Shape{20});
  CHECK(FindSpec(language, "language.layers.0.self_attn.k_proj.weight").shape == Shape{4, 16});
  CHECK(FindSpec(language, "language.layers.3.mlp.down_proj.weight").shape == Shape{16, 24});
  CHECK(FindSpec(language, "language.lm_head.weight").shape == Shape{21, 16});
}

TEST_CASE("layers behind the feature layer are not built", "[modules]") {
  const auto names = Names(SmallModulesConfig(), "vision", 0);
  CHECK(Contains(names, "vision.encoder.layers.1.mlp.fc2.bias"));
  CHECK_FALSE(Contains(names, "vision.encoder.layers.2.mlp.fc2.bias"));
}

TEST_CASE("linear weights start at 1/sqrt(fan in), the ends of branches smaller", "[modules]") {
  const Config config = SmallModulesConfig();
  const auto vision = StageParameters(config, "vision", 0);
  const auto language = StageParameters(config, "language", 0);
  CHECK(FindSpec(vision, "vision.embeddings.patch_embedding.weight").std ==
        Approx(1 / std::sqrt(48.0)));
  CHECK(FindSpec(vision, "vision.embeddings.position_embedding.weight").std ==
        Approx(1 / std::sqrt(8.0)));
  CHECK(FindSpec(vision, "vision.encoder.layers.0.mlp.fc2.weight").std ==
        Approx(1 / std::sqrt(12.0 * 2 * 3)));
  CHECK(FindSpec(language, "language.layers.0.self_attn.q_proj.weight").std == Approx(0.25));
  CHECK(FindSpec(language, "language.layers.0.self_attn.o_proj.weight").std ==
        Approx(0.25 / std::sqrt(8.0)));
  CHECK(FindSpec(language, "language.norm.weight").initial == Initial::kOnes);
  CHECK(FindSpec(vision, "vision.encoder.layers.0.mlp.fc1.bias").initial == Initial::kZeros);
}

TEST_CASE("a projector runs at its own end, and is a part of its own, as a module is",
          "[modules]") {
  const Config config = SmallModulesConfig();
  CHECK(Contains(Names(config, "vision", 0), "vision_to_language.linear_1.weight"));
  CHECK_FALSE(Contains(Names(config, "audio", 0), "audio_to_language.linear_1.weight"));
  const auto language = StageParameters(config, "language", 0);
  CHECK(FindSpec(language, "audio_to_language.linear_1.weight").part == "audio_to_language");
  CHECK(FindSpec(language, "language.norm.weight").part == "language");
}

TEST_CASE("stages hold each parameter once, but for the copies of a tied head", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[2].layout.pp = 3;
  config.modules[2].As<LlamaConfig>().tied_head = GENERATE(false, true);
  config.modules[0].inline_in = "language";
  std::map<std::string, int> count;
  int copies = 0;
  for (int pp = 0; pp < 3; ++pp) {
    for (const ParameterSpec& spec : StageParameters(config, "language", pp)) {
      ++count[spec.name];
      copies += spec.tied_copy;
      CHECK(spec.tied == (config.modules[2].As<LlamaConfig>().tied_head &&
                          spec.name == "language.embed_tokens.weight"));
    }
  }
  for (const auto& [name, times] : count) {
    INFO(name);
    CHECK(times == (name == "language.embed_tokens.weight" ? 1 + copies : 1));
  }
  CHECK(copies == (config.modules[2].As<LlamaConfig>().tied_head ? 1 : 0));
  CHECK(count.contains("vision.pre_layrnorm.weight"));
  CHECK(count.contains("language.lm_head.weight") ==
        !config.modules[2].As<LlamaConfig>().tied_head);
}

TEST_CASE("the slices of all ranks cover each parameter, each element owned once", "[modules]") {
  const Config config = SmallModulesConfig();
  const int tp = GENERATE(1, 2, 4, 8);
  for (const ParameterSpec& spec : StageParameters(config, "language", 0)) {
    INFO(spec.name << " over " << tp);
    const std::int64_t columns = spec.shape.size() > 1 ? spec.shape[1] : 1;
    std::vector<int> owned(static_cast<std::size_t>(spec.num_elements()), 0);
    for (int rank = 0; rank < tp; ++rank) {
      const ParameterSlice slice = *SliceOf(spec, {.tp = tp}, {.tp = rank});
      if (!slice.owner) continue;
      const std::int64_t width = slice.shape.size() > 1 ? slice.shape[1] : 1;
      const std::int64_t left = slice.shape.size() > 1 ? slice.offsets[1] : 0;
      for (std::int64_t row = 0; row < slice.shape[0]; ++row) {
        for (std::int64_t column = 0; column < width; ++column) {
          ++owned[static_cast<std::size_t>((slice.offsets[0] + row) * columns + left + column)];
        }
      }
    }
    CHECK(std::ranges::all_of(owned, [](int times) { return times == 1; }));
  }
}

TEST_CASE("ranks beyond the key/value heads share a head and one of them owns it", "[modules]") {
  const auto specs = StageParameters(SmallModulesConfig(), "language", 0);
  const ParameterSpec& key = FindSpec(specs, "language.layers.0.self_attn.k_proj.weight");
  const std::vector<std::int64_t> offsets = {0, 0, 0, 0, 2, 2, 2, 2};
  for (int rank = 0; rank < 8; ++rank) {
    const ParameterSlice slice = *SliceOf(key, {.tp = 8}, {.tp = rank});
    CHECK(slice.shape == Shape{2, 16});
    CHECK(slice.offsets[0] == offsets[static_cast<std::size_t>(rank)]);
    CHECK(slice.owner == (rank % 4 == 0));
  }
  CHECK_THROWS_WITH(SliceOf(key, {.tp = 3}, {}),
                    "language.layers.0.self_attn.k_proj.weight: 2 key/value heads cannot be shared "
                    "by tp 3");
}

}  // namespace
}  // namespace troupe
