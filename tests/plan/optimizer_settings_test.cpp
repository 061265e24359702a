#include "plan/optimizer_settings.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "plan/stage_parts.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

Traits TraitsOf(const std::map<std::string, ParameterSpec>& specs, const std::string& name) {
  INFO(name);
  REQUIRE(specs.contains(name));
  return specs.at(name).traits;
}

}  // namespace

TEST_CASE("parameters know whether they are biases, norms or embeddings", "[modules]") {
  Config config = SmallModulesConfig();
  auto& llama = config.modules[2].As<LlamaConfig>();
  llama.attention_bias = AttentionBias::kAll;
  llama.head_norms = true;
  const auto specs = AllParameters(config);
  const auto of = [&specs](const std::string& name) { return TraitsOf(specs, name); };
  CHECK(of("vision.embeddings.class_embedding") == Traits{Trait::kClassEmbedding});
  CHECK(of("vision.embeddings.position_embedding.weight") == Traits{Trait::kEmbedding});
  CHECK(of("vision.embeddings.patch_embedding.weight") == Traits{});
  CHECK(of("vision.pre_layrnorm.weight") == Traits{Trait::kNorm});
  CHECK(of("vision.pre_layrnorm.bias") == Traits{Trait::kNorm, Trait::kBias});
  CHECK(of("vision.encoder.layers.0.self_attn.q_proj.bias") == Traits{Trait::kBias});
  CHECK(of("vision.encoder.layers.0.self_attn.q_proj.weight") == Traits{});
  CHECK(of("vision_to_language.linear_2.bias") == Traits{Trait::kBias});
  CHECK(of("language.embed_tokens.weight") == Traits{Trait::kEmbedding});
  CHECK(of("language.layers.2.self_attn.k_proj.bias") == Traits{Trait::kBias});
  CHECK(of("language.layers.2.self_attn.k_norm.weight") == Traits{Trait::kNorm});
  CHECK(of("language.norm.weight") == Traits{Trait::kNorm});
  CHECK(of("language.lm_head.weight") == Traits{});
}

TEST_CASE("unless stated, exactly the vectors do not decay", "[modules]") {
  Config config = SmallModulesConfig();
  config.optimizer.weight_decay = 0.125;
  for (const auto& [name, spec] : AllParameters(config)) {
    INFO(spec.name);
    CHECK(WeightDecayOf(config, spec) == (spec.shape.size() == 1 ? 0.0 : 0.125));
  }
}

TEST_CASE("a rule decides which parameters decay", "[modules]") {
  Config config = SmallModulesConfig();
  config.optimizer.weight_decay = 0.125;
  config.modules[0].optimizer.weight_decay = 0.25;
  config.optimizer.no_decay = {Trait::kNorm, Trait::kEmbedding};
  for (const auto& [name, spec] : AllParameters(config)) {
    INFO(spec.name);
    const bool none = spec.traits.Has(Trait::kNorm) || spec.traits.Has(Trait::kEmbedding);
    // The projector of "vision" runs there.
    const double decay = spec.part == "vision" || spec.part == "vision_to_language" ? 0.25 : 0.125;
    CHECK(WeightDecayOf(config, spec) == (none ? 0.0 : decay));
  }
}

TEST_CASE("a projector's own values come before those of its module, and those before all",
          "[modules]") {
  Config config = SmallModulesConfig();
  config.optimizer.learning_rate = 1e-3;
  config.optimizer.min_learning_rate = 1e-5;
  config.optimizer.weight_decay = 0.5;
  config.modules[0].optimizer.learning_rate = 2e-3;   // vision, with its projector
  config.modules[2].optimizer.weight_decay = 0.0625;  // language, with the projector of audio
  const auto check = [&config](const std::string& part, double high, double low, double decay) {
    INFO(part);
    const OptimizerSettings settings = SettingsOf(config, part);
    CHECK(settings.learning_rate == high);
    CHECK(settings.min_learning_rate == low);
    CHECK(settings.weight_decay == decay);
  };
  check("audio", 1e-3, 1e-5, 0.5);
  check("vision", 2e-3, 1e-5, 0.5);
  check("vision_to_language", 2e-3, 1e-5, 0.5);
  check("audio_to_language", 1e-3, 1e-5, 0.0625);
  config.edges[0].through->optimizer = {.learning_rate = 4e-3, .min_learning_rate = 1e-6};
  config.edges[1].through->optimizer = {.weight_decay = 0.75};
  check("vision_to_language", 4e-3, 1e-6, 0.5);
  check("audio_to_language", 1e-3, 1e-5, 0.75);
  CHECK(SettingsOf(config, "vision_to_language").RateAt(0.0) == 1e-6);
  CHECK(SettingsOf(config, "vision_to_language").RateAt(1.0) == 4e-3);
  CHECK_THROWS_WITH(SettingsOf(config, "video"), Catch::Contains("video"));
}

TEST_CASE("parts that are frozen are not trained", "[modules]") {
  Config config = SmallModulesConfig();
  CHECK(TrainedParts(config) == std::vector<std::string>{"vision", "audio", "language",
                                                         "vision_to_language",
                                                         "audio_to_language"});
  config.modules[1].frozen = true;
  config.edges[0].through->frozen = true;
  CHECK(TrainedParts(config) ==
        std::vector<std::string>{"vision", "language", "audio_to_language"});
}

}  // namespace troupe
