// LLaVA-1.5's two stages as a user runs them, against a plain loop of transformers
// (tools/oracle/record_recipes.py): tokens, labels, pixels, losses, schedule and optimizer together.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

const std::string kRecipes = "tests/oracle/recipes/";

/// Where the modules run.
struct Placing {
  const char* name;
  const char* vision;
  const char* language;
  int ranks;
};

const std::vector<Placing> kPlacings = {
    {"inline", "inline_in = \"language\"", "ranks = \"0\"", 1},
    {"disjoint", "ranks = \"0-3\"\nlayout = { dp = 4 }",
     "ranks = \"4-7\"\nlayout = { tp = 2, pp = 2 }", 8},
    {"colocated", "ranks = \"0-3\"\nlayout = { tp = 2, dp = 2 }",
     "ranks = \"0-3\"\nlayout = { pp = 2, dp = 2 }", 4}};

std::string ConfigText(const Placing& placing, const std::string& model, bool pretrain) {
  return "[run]\nsteps = 4\nprecision = \"float64\"\n[cluster]\nranks = " +
         std::to_string(placing.ranks) + "\n[model]\nfrom = \"hf:" + model +
         "\"\n[modules.vision]\nfrozen = true\n" + placing.vision +
         "\n[modules.language]\nfrozen = " + (pretrain ? "true" : "false") + "\n" +
         placing.language +
         "\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n[schedule]\nmicro_batch_size = 4\n"
         "global_batch = 64\n[optimizer]\nlearning_rate = " +
         (pretrain ? "1e-2" : "5e-3") +
         "\nwarmup_ratio = 0.25\nwarmup_from_zero = true\nbetas = [0.9, 0.999]\n"
         "weight_decay = 0.0\nclip_norm = 1.0\n[data]\nprompt = \"" +
         (pretrain ? "plain" : "vicuna_v1") + "\"\n";
}

/// Trains a stage and compares every step; returns the run directory.
std::string CheckStage(const ScratchFolder& folder, const std::string& stage,
                       const Placing& placing, const std::string& model) {
  const std::string config =
      folder.Write(stage + ".toml", ConfigText(placing, model, stage == "pretrain"));
  const std::string list = std::filesystem::absolute(kRecipes + stage + ".json").string();
  const Outcome outcome = RunTroupe({"train", config, "--set", "data.train=" + list, "--set",
                                     "run.dir=" + (folder / "runs"), "--set", "run.name=" + stage});
  INFO(stage << ", " << placing.name << ": " << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto expected = nlohmann::json::parse(BytesOf(kRecipes + "expected.json")).at(stage);
  const std::string run = FindRun(folder / "runs/latest");
  std::ifstream metrics(run + "/metrics.jsonl");
  std::size_t steps = 0;
  for (std::string line; std::getline(metrics, line);) {
    const auto step = nlohmann::json::parse(line);
    if (step.at("kind") != "step") continue;
    CHECK(step.at("loss").get<double>() == Approx(expected["losses"][steps]).epsilon(1e-10));
    CHECK(step.at("gradient_norm").get<double>() == Approx(expected["norms"][steps]).epsilon(1e-8));
    CHECK(step.at("valid_tokens") == expected["tokens"]);
    ++steps;
  }
  CHECK(steps == 4);
  return run;
}

TEST_CASE("both stages of LLaVA train as a plain loop of transformers does", "[cli][oracle]") {
  const Placing& placing = GENERATE(from_range(kPlacings));
  const ScratchFolder folder;
  const std::string model = std::filesystem::absolute(kRecipes + "model").string();
  const std::string first = CheckStage(folder, "pretrain", placing, model);
  const Outcome exported = RunTroupe({"export", first, "--out", folder / "pretrained"});
  INFO(exported.err);
  REQUIRE(exported.exit_code == 0);
  CheckStage(folder, "finetune", placing, folder / "pretrained");
}

}  // namespace
}  // namespace troupe
