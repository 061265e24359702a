// Kinds of modules: every list has the same ones, and a kind that no other program knows trains in
// every placement as the unsharded model does.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "kinds/kind.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/parity/audio_kind.hpp"
#include "tests/parity/proof.hpp"

namespace troupe {
namespace {

// Before main(): the keys of a configuration are listed once.
const bool kAdded = (AddAudioKind(), true);

/// 40 samples with 0 to 2 sounds of 4 to 22 frames.
std::string WriteSounds(const ScratchFolder& folder) {
  std::string rows;
  for (int row = 0; row < 40; ++row) {
    std::string files;
    std::string text;
    for (int j = 0; j < row % 3; ++j) {
      const int number = 3 * row + j;
      const std::string name = std::to_string(number) + ".txt";
      folder.Write(name, AudioFile(number, 4 + (5 * number) % 19));
      files += (j == 0 ? "\"" : ", \"") + name + "\"";
      text += "<audio>";
    }
    rows += (row == 0 ? "[" : ", ") + std::string("{\"id\": \"r") + std::to_string(row) +
            "\", \"audio\": [" + files +
            "], \"conversations\": [{\"from\": \"human\", \"value\": \"" + text +
            " how many\"}, {\"from\": \"gpt\", \"value\": \"" + std::to_string(row % 3) +
            " sounds\"}]}";
  }
  return folder.Write("sounds.json", rows + "]");
}

std::string Toml(const std::string& data, int ranks, const std::string& audio,
                 const std::string& language) {
  return "run = { precision = \"float64\", steps = 6, seed = 5 }\n"
         "cluster.ranks = " +
         std::to_string(ranks) + "\n[modules.audio]\nkind = \"audio\"\nhidden = 8\nlayers = 2\n" +
         audio +
         "\n[modules.language]\nkind = \"llama\"\nvocab = 261\nhidden = 24\nlayers = 3\nheads = 4\n"
         "kv_heads = 2\nmlp_hidden = 48\ncontext = 64\n" +
         language +
         "\n[[edges]]\nfrom = \"audio\"\nto = \"language\"\n"
         "through = { kind = \"mlp2\", hidden = 12 }\n"
         "[schedule]\nmicro_batch_size = 3\nmicrobatches = 3\n"
         "[optimizer]\nlearning_rate = 2e-3\nclip_norm = 0.05\n"
         "[data]\ntrain = \"" +
         data + "\"\n";
}

void CheckProof(const std::string& audio, const std::string& language, int ranks) {
  REQUIRE(kAdded);
  const ScratchFolder folder;
  const std::string data = WriteSounds(folder);
  const std::string file = folder.Write("run.toml", Toml(data, ranks, audio, language));
  const Proof proof = Prove(LoadConfig(file).config);
  CHECK(proof.Objection() == "");
  CHECK(proof.worst_gradient < 1e-11);
}

}  // namespace

TEST_CASE("every kind that computes has a body, and every body a kind", "[kinds]") {
  std::vector<std::string> computing;
  for (const ModuleKind* kind : Kinds()) {
    if (kind->make()->computes()) computing.emplace_back(kind->word);
  }
  std::vector<std::string> bodies = KindsWithBody();
  std::ranges::sort(computing);
  std::ranges::sort(bodies);
  CHECK(bodies == computing);
}

TEST_CASE("sounds of many lengths train as unsharded, from 3 replicas to 2", "[kinds]") {
  CheckProof("ranks = \"4-6\"\nlayout = { dp = 3 }", "ranks = \"0-3\"\nlayout = { tp = 2, dp = 2 }",
             7);
}

TEST_CASE("sounds of many lengths train as unsharded, cut and in a pipeline", "[kinds]") {
  CheckProof("ranks = \"4-7\"\nlayout = { tp = 2, pp = 2 }",
             "ranks = \"0-3\"\nlayout = { pp = 2, dp = 2 }", 8);
}

TEST_CASE("sounds of many lengths train as unsharded, 3 to 2 on the same ranks", "[kinds]") {
  CheckProof("ranks = \"0-5\"\nlayout = { tp = 2, dp = 3 }",
             "ranks = \"0-5\"\nlayout = { pp = 3, dp = 2 }", 6);
}

TEST_CASE("sounds of many lengths train as unsharded, inline", "[kinds]") {
  CheckProof("inline_in = \"language\"", "ranks = \"0-3\"\nlayout = { tp = 2, dp = 2 }", 4);
}

}  // namespace troupe
