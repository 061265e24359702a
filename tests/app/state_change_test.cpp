// What becomes of modules whose state a checkpoint does not have as a configuration needs it.
#include "app/state_change.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// A checkpoint of a run of `config`.
CheckpointManifest SavedBy(const Config& config) {
  StoredShard shard{.file = "f"};
  for (const auto& [name, spec] : AllParameters(config)) {
    if (spec.frozen && spec.from_folder) continue;
    for (const TensorKind kind :
         {TensorKind::kParameter, TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
      if (kind != TensorKind::kParameter && spec.frozen) continue;
      shard.tensors.push_back({kind, name, spec.shape, DType::kFloat32, 1});
    }
  }
  return MakeManifest({.step = 4}, {{{.module = "language"}, shard}});
}

Config Shapes(const std::vector<std::string>& overrides = {}) {
  return LoadConfig("configs/shapes.toml", overrides).config;
}

/// "vision: is new", each change a text.
std::vector<std::string> Changes(const Config& now, const Config& before) {
  std::vector<std::string> texts;
  for (const PartChange& change : CompareState(now, SavedBy(before))) {
    texts.push_back(change.part + (change.fresh ? " (fresh) " : " ") + change.line);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("layouts and precisions need no other state", "[cli]") {
  CHECK(Changes(Shapes({"modules.language.layout={dp=4}", "run.precision=float64",
                        "optimizer.shard=data"}),
                Shapes())
            .empty());
}

TEST_CASE("a module that is new or left out is named with its tensors", "[cli]") {
  const Config one = Shapes({"modules.language.vocab=261"});
  const Config two = LoadConfig("configs/shapes_two_encoders.toml").config;
  const Texts added = Changes(two, one);
  const auto names = [](const Texts& texts, const std::string& part) {
    return std::ranges::any_of(texts,
                               [&](const std::string& text) { return text.starts_with(part); });
  };
  for (const ModuleConfig& module : two.modules) {
    const bool is_new = one.Find(module.name) == nullptr;
    CHECK(names(added,
                module.name + " (fresh) not in the checkpoint, begins with its own values: ") ==
          is_new);
    CHECK(names(Changes(one, two), module.name + " left out: ") == is_new);
  }
}

TEST_CASE("a module that is frozen or trained from here on is named", "[cli]") {
  const Config frozen = Shapes({"modules.vision.frozen=true"});
  CHECK(Changes(frozen, Shapes()) ==
        Texts{"vision trained before, frozen from here on without moments: 53 tensors "
              "(vision.embeddings.class_embedding, ...)"});
  CHECK(Changes(Shapes(), frozen) ==
        Texts{"vision (fresh) frozen before, trained from here on with moments of 0: 53 tensors "
              "(vision.embeddings.class_embedding, ...)"});
}

TEST_CASE("values of a folder never replace those of a checkpoint unless that is asked for",
          "[cli]") {
  Config now = Shapes({"modules.vision.frozen=true"});
  now.modules[0].weights = "hf:models/clip";
  CHECK_THROWS_WITH(
      CompareState(now, SavedBy(Shapes())),
      "vision was trained and is frozen now, so its folder's values would replace "
      "those that were trained: set its `weights` to \"run:\" and the run's directory");
  CHECK(Changes(now, Shapes({"modules.vision.frozen=true"})) ==
        Texts{"vision not those of the checkpoint, but of the folder: 53 tensors "
              "(vision.embeddings.class_embedding, ...)"});
  now.modules[0].frozen = false;  // what is trained comes from the checkpoint
  CHECK(Changes(now, Shapes()).empty());
}

TEST_CASE("a tensor of another shape is refused", "[cli]") {
  CHECK_THROWS_WITH(CompareState(Shapes({"modules.vision.mlp_hidden=128"}), SavedBy(Shapes())),
                    Catch::StartsWith("tensor vision.encoder.layers.0.mlp.fc1.bias is [128], in "
                                      "the checkpoint [256]"));
}

}  // namespace
}  // namespace troupe
