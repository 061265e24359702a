// A job that starts from folders trains in every placement as the unsharded model that starts from
// them does.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/safetensors.hpp"
#include "configs/loader.hpp"
#include "modules/torch/reference.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/parity/proof.hpp"

namespace troupe {
namespace {

constexpr const char* kVisionKeys =
    "kind = \"vit\"\nimage_size = 16\npatch_size = 8\nhidden = 24\nlayers = 3\nheads = 4\n";
constexpr const char* kLanguageKeys =
    "kind = \"llama\"\nvocab = 261\nhidden = 24\nlayers = 3\nheads = 4\nkv_heads = 2\n"
    "mlp_hidden = 48\ncontext = 96\nhead_norms = true\nhead_dim = 8\n";

std::string Toml(int ranks, int seed, const std::string& vision, const std::string& language) {
  return "run = { precision = \"float64\", steps = 6, seed = " + std::to_string(seed) +
         " }\ncluster.ranks = " + std::to_string(ranks) + "\n[modules.vision]\n" + vision +
         "\n[modules.language]\n" + language +
         "\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n"
         "through = { kind = \"mlp2\", hidden = 12 }\n"
         "[schedule]\nmicro_batch_size = 2\nmicrobatches = 3\n"
         "[optimizer]\nlearning_rate = 2e-3\nclip_norm = 0.05\n"
         "[data]\ntrain = \"" +
         std::filesystem::absolute("data/shapes/train.json").string() + "\"\n";
}

/// Folders of a vision encoder and of a language model, in two files, whose values no run with the
/// seed of these tests has.
class Folders {
 public:
  Folders() {
    const std::string file = scratch_.Write(
        "made.toml", Toml(2, /*seed=*/77, kVisionKeys + std::string("ranks = \"0\"\n"),
                          kLanguageKeys + std::string("ranks = \"1\"\n")));
    const Reference reference(LoadConfig(file).config);
    std::filesystem::create_directory(vision());
    std::filesystem::create_directory(language());
    scratch_.Write("vision/config.json",
                   R"({"model_type": "clip_vision_model", "image_size": 16, "patch_size": 8,
                       "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
                       "intermediate_size": 96})");
    scratch_.Write("language/config.json",
                   R"({"model_type": "qwen3", "vocab_size": 261, "hidden_size": 24,
                       "num_hidden_layers": 3, "num_attention_heads": 4,
                       "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48,
                       "max_position_embeddings": 96, "rms_norm_eps": 1e-5})");
    WriteSafetensors(vision() + "/model.safetensors",
                     Renamed(reference, "vision.", "vision_model."));
    std::vector<NamedTensor> all = Renamed(reference, "language.", "model.");
    std::string index;
    std::vector<std::vector<NamedTensor>> files(2);
    for (std::size_t i = 0; i < all.size(); ++i) {
      index += (i > 0 ? ", \"" : "\"") + all[i].name + "\": \"" + FileName(i % 2) + "\"";
      files[i % 2].push_back(all[i]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      WriteSafetensors(language() + "/" + FileName(i), files[i]);
    }
    scratch_.Write("language/model.safetensors.index.json", "{\"weight_map\": {" + index + "}}");
  }

  std::string vision() const { return scratch_ / "vision"; }
  std::string language() const { return scratch_ / "language"; }

  Config Load(int ranks, const std::string& vision_keys, const std::string& language_keys) const {
    return LoadConfig(
               scratch_.Write("run.toml",
                              Toml(ranks, /*seed=*/5, "weights = \"hf:vision\"\n" + vision_keys,
                                   "weights = \"hf:language\"\n" + language_keys)))
        .config;
  }

 private:
  static std::string FileName(std::size_t i) {
    return "part-" + std::to_string(i) + ".safetensors";
  }

  static std::vector<NamedTensor> Renamed(const Reference& reference, const std::string& ours,
                                          const std::string& theirs) {
    std::vector<NamedTensor> tensors;
    for (const TensorPiece& piece : reference.Tensors(TensorKind::kParameter)) {
      if (!piece.name.starts_with(ours)) continue;
      const std::string own = piece.name.substr(ours.size());
      tensors.push_back({(own.starts_with("lm_head") ? "" : theirs) + own, piece.value});
    }
    return tensors;
  }

  ScratchFolder scratch_;
};

/// All gradients equal those of the reference, which starts from the same folders.
void CheckProof(const Config& config) {
  const Proof proof = Prove(config);
  CHECK(proof.Objection() == "");
  CHECK(proof.worst_gradient < 1e-11);
}

TEST_CASE("modules from folders train as unsharded, from 3 replicas to 2", "[kinds]") {
  const Folders folders;
  CheckProof(folders.Load(7, "ranks = \"4-6\"\nlayout = { dp = 3 }",
                          "ranks = \"0-3\"\nlayout = { tp = 2, dp = 2 }"));
}

TEST_CASE("modules from folders train as unsharded, cut and in a pipeline", "[kinds]") {
  const Folders folders;
  CheckProof(folders.Load(8, "ranks = \"4-7\"\nlayout = { tp = 2, pp = 2 }\nfrozen = true",
                          "ranks = \"0-3\"\nlayout = { tp = 4 }"));
}

TEST_CASE("modules from folders train as unsharded, inline", "[kinds]") {
  const Folders folders;
  CheckProof(
      folders.Load(4, "inline_in = \"language\"", "ranks = \"0-3\"\nlayout = { tp = 2, pp = 2 }"));
}

TEST_CASE("a job that does not read its folders is found out", "[kinds]") {
  const Folders folders;
  const Config config = folders.Load(2, "ranks = \"0\"", "ranks = \"1\"");
  // Programs of the same sizes that start from random values.
  Config random = config;
  for (ModuleConfig& module : random.modules) module.weights.reset();
  CHECK(Prove(config).Objection() == "");
  CHECK(Prove(random).Objection() == "");
  CHECK_FALSE(Prove(config, Portable(random)).faults.empty());
}

}  // namespace
}  // namespace troupe
