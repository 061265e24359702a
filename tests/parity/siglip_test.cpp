// An encoder of kind "siglip" trains in every placement as the unsharded model does.
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/parity/proof.hpp"

namespace troupe {
namespace {

std::string SiglipToml(int ranks, const std::string& vision, const std::string& language) {
  return "run = { precision = \"float64\", steps = 6, seed = 5 }\n"
         "cluster.ranks = " +
         std::to_string(ranks) +
         "\n[modules.vision]\nkind = \"siglip\"\nimage_size = 16\npatch_size = 8\nhidden = 24\n"
         "layers = 3\nheads = 4\n" +
         vision +
         "\n[modules.language]\nkind = \"llama\"\nvocab = 261\nhidden = 24\nlayers = 3\nheads = 4\n"
         "kv_heads = 2\nmlp_hidden = 48\ncontext = 96\n" +
         language +
         "\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n"
         "through = { kind = \"mlp2\", hidden = 12 }\n"
         "[schedule]\nmicro_batch_size = 2\nmicrobatches = 3\n"
         "[optimizer]\nlearning_rate = 2e-3\nclip_norm = 0.05\n"
         "[data]\ntrain = \"" +
         std::filesystem::absolute("data/shapes/train.json").string() + "\"\n";
}

void CheckSiglip(const std::string& vision, const std::string& language, int ranks) {
  const ScratchFolder folder;
  const std::string file = folder.Write("run.toml", SiglipToml(ranks, vision, language));
  const Proof proof = Prove(LoadConfig(file).config);
  CHECK(proof.Objection() == "");
  CHECK(proof.worst_gradient < 1e-11);
}

}  // namespace

TEST_CASE("a siglip encoder trains as unsharded, from 3 replicas to 2", "[kinds]") {
  CheckSiglip("ranks = \"4-6\"\nlayout = { dp = 3 }",
              "ranks = \"0-3\"\nlayout = { tp = 2, dp = 2 }", 7);
}

TEST_CASE("a siglip encoder trains as unsharded, cut, in a pipeline, and recomputed", "[kinds]") {
  CheckSiglip("ranks = \"4-9\"\nlayout = { tp = 2, pp = 3 }\nrecompute = \"full\"",
              "ranks = \"0-3\"\nlayout = { pp = 2, dp = 2 }", 10);
}

TEST_CASE("a siglip encoder trains as unsharded, 3 to 2 on the same ranks", "[kinds]") {
  CheckSiglip("ranks = \"0-5\"\nlayout = { tp = 2, dp = 3 }",
              "ranks = \"0-5\"\nlayout = { pp = 3, dp = 2 }", 6);
}

TEST_CASE("a siglip encoder trains as unsharded, inline", "[kinds]") {
  CheckSiglip("inline_in = \"language\"", "ranks = \"0-3\"\nlayout = { tp = 2, dp = 2 }", 4);
}

}  // namespace troupe
