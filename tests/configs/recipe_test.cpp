// The keys of training recipes: lengths in epochs and ratios, decay by rule, rates of projectors.
#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "tests/configs/base.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {

using Catch::Matchers::Contains;

/// Whether the resolved text means the same configuration.
static bool Survives(const LoadedConfig& loaded) {
  ScratchFolder folder;
  return LoadConfig(folder.Write("resolved.toml", loaded.resolved_toml)).config == loaded.config;
}

TEST_CASE("epochs replace inherited steps, and steps inherited epochs") {
  const LoadedConfig epochs = LoadConfig(kExample, {"run.epochs=1.5"});
  CHECK(epochs.config.run.epochs == 1.5);
  CHECK(epochs.config.run.steps == 0);  // until the rows are counted
  CHECK_THAT(epochs.resolved_toml, Contains("\nepochs = 1.5\n") && !Contains("\nsteps = "));
  CHECK(Survives(epochs));
  const LoadedConfig steps = LoadConfig(kExample, {"run.epochs=1.5", "run.steps=12"});
  CHECK_FALSE(steps.config.run.epochs);
  CHECK(steps.config.run.steps == 12);
  CHECK_THAT(steps.resolved_toml, Contains("\nsteps = 12\n") && !Contains("epochs"));
}

TEST_CASE("a warm-up ratio replaces inherited warm-up steps, and they the ratio") {
  const LoadedConfig ratio = LoadConfig(kExample, {"optimizer.warmup_ratio=0.03"});
  CHECK(ratio.config.optimizer.warmup_ratio == 0.03);
  CHECK_THAT(ratio.resolved_toml,
             Contains("\nwarmup_ratio = 0.03\n") && !Contains("\nwarmup_steps = "));
  CHECK(Survives(ratio));
  const LoadedConfig steps =
      LoadConfig(kExample, {"optimizer.warmup_ratio=0.03", "optimizer.warmup_steps=7"});
  CHECK_FALSE(steps.config.optimizer.warmup_ratio);
  CHECK(steps.config.optimizer.warmup_steps == 7);
}

TEST_CASE("unless stated, biases, norms and the class embedding do not decay") {
  const LoadedConfig unset = LoadConfig(kBase);
  CHECK(unset.config.optimizer.no_decay ==
        Traits{Trait::kBias, Trait::kNorm, Trait::kClassEmbedding});
  CHECK_THAT(unset.resolved_toml, Contains("no_decay = [\"bias\", \"norm\", \"class_embedding\"]"));
  const LoadedConfig some = LoadConfig(kBase, {"optimizer.no_decay=['embedding', 'norm']"});
  CHECK(some.config.optimizer.no_decay == Traits{Trait::kNorm, Trait::kEmbedding});
  CHECK(Survives(some));
  const LoadedConfig none = LoadConfig(kBase, {"optimizer.no_decay=[]"});
  CHECK(none.config.optimizer.no_decay == Traits{});
  CHECK_THAT(none.resolved_toml, Contains("no_decay = []"));
  CHECK(Survives(none));
}

TEST_CASE("a projector has optimizer values of its own") {
  const LoadedConfig loaded =
      LoadConfig(kBase, {"edges.vision.language.through.optimizer.learning_rate=2e-5",
                         "edges.vision.language.through.optimizer.weight_decay=0.25"});
  const OptimizerOverride& own = loaded.config.edges.at(0).through->optimizer;
  CHECK(own.learning_rate == 2e-5);
  CHECK(own.weight_decay == 0.25);
  CHECK_FALSE(own.min_learning_rate);
  CHECK_FALSE(loaded.config.Find("vision")->optimizer.learning_rate);
  CHECK_THAT(loaded.resolved_toml,
             Contains("frozen = false, optimizer = { learning_rate = 2e-05, weight_decay = 0.25 } "
                      "}\n"));
  CHECK(Survives(loaded));
}

TEST_CASE("schedules, grouping, logs and the peak of a device survive the resolved text") {
  const LoadedConfig loaded = LoadConfig(
      kBase, {"optimizer.schedule=linear", "optimizer.warmup_from_zero=true",
              "data.group_by=modality_length", "log.tensorboard=true", "cluster.peak_tflops=989"});
  CHECK(loaded.config.optimizer.schedule == RateSchedule::kLinear);
  CHECK(loaded.config.optimizer.warmup_from_zero);
  CHECK(loaded.config.data.group_by == GroupBy::kModalityLength);
  CHECK(loaded.config.log.tensorboard);
  CHECK(loaded.config.cluster.peak_tflops == 989.0);
  CHECK(Survives(loaded));
}

TEST_CASE("a module may train adapters alone") {
  const LoadedConfig some =
      LoadConfig(kBase, {"modules.language.lora={rank=4,alpha=6.5,linears=['up', 'q']}"});
  const LoraConfig& lora = some.config.Find("language")->lora.value();
  CHECK(lora.rank == 4);
  CHECK(lora.scale() == 6.5 / 4);
  CHECK(lora.linears == LinearRoles{LinearRole::kQuery, LinearRole::kUp});
  CHECK_THAT(
      some.resolved_toml,
      Contains("lora = { rank = 4, alpha = 6.5, dropout = 0.0, linears = [\"q\", \"up\"] }"));
  CHECK(Survives(some));
  CHECK_FALSE(LoadConfig(kBase).config.Find("language")->lora);
  const LoadedConfig drops = LoadConfig(kBase, {"modules.language.lora={rank=4,dropout=0.05}"});
  CHECK(drops.config.Find("language")->lora->dropout == 0.05);
  CHECK(lora.dropout == 0.0);
  CHECK_THAT(
      ErrorsOf({"modules.language.lora.dropout=1"}),
      Contains("modules.language.lora.dropout: expected a number of at least 0 and below 1"));
  const std::string linears = "modules.language.lora.linears";
  CHECK_THAT(ErrorsOf({linears + "=['q', 'fc1']"}),
             Contains(linears + ": expected some of \"q\", \"k\", \"v\", \"o\", \"gate\", \"up\", "
                                "\"down\", the linear layers of a \"llama\", got \"q\", \"fc1\""));
  CHECK_THAT(ErrorsOf({linears + "=[]"}), Contains(linears + ": expected some of"));
  CHECK_THAT(ErrorsOf({linears + "=['q_proj']"}), Contains("expected a list of \"q\", \"k\""));
  CHECK_THAT(ErrorsOf({"modules.language.lora.rank=4", "modules.language.frozen=true"}),
             Contains("modules.language.frozen: expected false beside `lora`"));
  CHECK_THAT(ErrorsOf({"modules.language.lora.rank=65"}),
             Contains("modules.language.lora.rank: expected at most "));
  CHECK_THAT(ErrorsOf({"modules.language.lora.rank=0"}), Contains("modules.language.lora.rank"));
}

}  // namespace troupe
