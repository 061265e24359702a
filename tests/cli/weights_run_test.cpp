// Modules that start from the parameters of an earlier run.
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/safetensors.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Words = std::vector<std::string>;

Words Train(const std::string& dir, const Words& settings) {
  Words words = {"train", "configs/shapes.toml"};
  for (const std::string& set : {std::string("run.evaluate_every=0"), std::string("data.held_out="),
                                 std::string("checkpoint.every=1"), "run.dir=" + dir}) {
    words.insert(words.end(), {"--set", set});
  }
  for (const std::string& set : settings) words.insert(words.end(), {"--set", set});
  return words;
}

bool SameTensor(const SafetensorsReader& a, const SafetensorsReader& b, const std::string& name) {
  const Buffer first = a.Read(name);
  const Buffer second = b.Read(name);
  return first.shape() == second.shape() &&
         std::equal(first.data(), first.data() + first.num_bytes(), second.data());
}

}  // namespace

TEST_CASE("a frozen module keeps the parameters of the run that it starts from", "[cli]") {
  const ScratchFolder folder;
  REQUIRE(RunTroupe(Train(folder / "first", {"run.steps=2"})).exit_code == 0);
  const std::string first = FindRun(folder / "first/latest");
  // The checkpoint of step 1, the run itself: its final parameters, those of step 2.
  const bool checkpoint = GENERATE(false, true);
  const std::string from = checkpoint ? CheckpointFolder(first, 1) : first;
  const Outcome outcome = RunTroupe(Train(
      folder / "second", {"run.steps=1", "modules.vision.weights=run:" + from,
                          "modules.vision.frozen=true", "modules.vision.layout={tp=2, dp=2}",
                          "edges.vision.language.through.weights=run:" + from, "run.seed=11"}));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string second = FindRun(folder / "second/latest");
  const SafetensorsReader before(first + "/weights.safetensors");
  const SafetensorsReader after(second + "/weights.safetensors");
  int same = 0;
  for (const TensorEntry& entry : before.entries()) {
    if (!entry.name.starts_with("vision.")) continue;
    CHECK(SameTensor(before, after, entry.name) == !checkpoint);
    ++same;
  }
  CHECK(same == 53);
  CHECK_FALSE(SameTensor(before, after, "language.norm.weight"));
  // It is stored again, so the first run may go.
  std::filesystem::remove_all(first);
  const Outcome resumed = RunTroupe({"train", "--resume", second, "--set", "run.steps=2"});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 2);  // the configuration names what is gone
  CHECK(RunTroupe({"train", "--resume", second, "--set", "run.steps=2", "--set",
                   "modules.vision.weights=run:" + second, "--set",
                   "edges.vision.language.through.weights=run:" + second})
            .exit_code == 0);
}

TEST_CASE("a run whose parameters do not fit a module is refused by tensor", "[cli]") {
  const ScratchFolder folder;
  REQUIRE(RunTroupe(Train(folder / "first", {"run.steps=1"})).exit_code == 0);
  const std::string first = FindRun(folder / "first/latest");
  const std::string weights = "modules.vision.weights=run:" + first;
  const auto error = [&](const Words& settings) {
    const Outcome outcome = RunTroupe(Train(folder / "second", settings));
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(
      error({weights, "modules.vision.mlp_hidden=128"}),
      Catch::Contains(first + "/weights.safetensors: expected tensor vision.encoder.layers.") &&
          Catch::Contains("found one of ["));
  CHECK_THAT(error({weights, "modules.vision.layers=6"}), Catch::Contains(", found none"));
  CHECK_THAT(error({"modules.vision.weights=run:" + (folder / "nothing")}),
             Catch::Contains(": expected a checkpoint or weights.safetensors, found neither"));
  CHECK_THAT(error({"modules.vision.weights=" + first}),
             Catch::Contains("expected \"hf:DIR\" or \"run:DIR\""));
}

}  // namespace troupe
