// Values that follow from others: microbatches from the global batch, sizes that are not stated.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "tests/configs/base.hpp"

namespace troupe {

TEST_CASE("microbatches follow from the global batch, whatever the replicas") {
  const LoadedConfig one = LoadConfig(kBase, {"schedule.global_batch=32"});
  CHECK(one.config.schedule.microbatches == 16);
  CHECK(one.config.global_batch() == 32);
  const LoadedConfig two =
      LoadConfig(kBase, {"schedule.global_batch=32", "modules.language.layout={ dp = 2 }"});
  CHECK(two.config.schedule.microbatches == 8);
  CHECK(two.config.global_batch() == 32);
  // What a run keeps says how many there were, and can be changed by itself.
  CHECK_THAT(two.resolved_toml,
             Catch::Contains("\nmicrobatches = 8\n") && !Catch::Contains("global_batch"));
  CHECK(Explain(two, "schedule.global_batch").starts_with("schedule.global_batch = 32\n  --set "));
}

TEST_CASE("the later of global_batch and microbatches clears the other") {
  CHECK(LoadConfig(kBase, {"schedule.global_batch=32", "schedule.microbatches=3"})
            .config.global_batch() == 6);
  CHECK(LoadConfig(kBase, {"schedule.microbatches=3", "schedule.global_batch=32"})
            .config.schedule.microbatches == 16);
}

TEST_CASE(
    "a global batch that microbatches cannot make up is refused with the nearest that they can") {
  CHECK(ErrorsOf({"schedule.global_batch=31"}) ==
        "--set schedule.global_batch=31: schedule.global_batch: expected a multiple of 2 samples * "
        "dp 1 of language = 2, got 31; the nearest are 30 and 32");
  CHECK_THAT(ErrorsOf({"schedule.global_batch=1"}), Catch::EndsWith("got 1; the nearest is 2"));
  CHECK_THAT(ErrorsOf({"schedule.global_batch=2000000"}),
             Catch::Contains("expected at most 100000 microbatches, got 2000000 / (2 samples"));
  CHECK_THAT(ErrorsOf({"schedule.global_batch=0"}), Catch::Contains("of at least 1, got 0"));
  // No second mistake follows from the first.
  CHECK_THAT(ErrorsOf({"schedule.global_batch=31", "schedule.window=7"}),
             !Catch::Contains("schedule.window:"));
}

TEST_CASE("sizes that are not stated follow from others") {
  const Config minimal = LoadConfig("configs/minimal.toml").config;
  CHECK(minimal.modules[0].As<VitConfig>().mlp_hidden == 256);
  CHECK(minimal.modules[0].input == InputConfig{"image", "<image>"});
  CHECK(minimal.modules[1].As<LlamaConfig>().kv_heads == 4);
  CHECK(minimal.modules[1].As<LlamaConfig>().mlp_hidden == 256);
  const auto mlp = [](const std::string& hidden) {
    return LoadConfig("configs/minimal.toml",
                      {"modules.language.hidden=" + hidden, "modules.vision.hidden=" + hidden})
        .config.modules[1]
        .As<LlamaConfig>()
        .mlp_hidden;
  };
  CHECK(mlp("4096") == 11008);  // Llama 2 7B
  CHECK(mlp("5120") == 13824);  // Llama 2 13B
}

}  // namespace troupe
