// From a run to a folder, from the folder to a run, and looks into both.
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "checkpoint/safetensors.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

const std::vector<std::string> kWhole = {"edges.vision.language.through.hidden=64"};

std::string Newest(const RunFolder& folder) { return FindRun(folder / "runs/latest"); }

TEST_CASE(
    "a run is exported, and another starts from the folder and leaves frozen modules out of "
    "its checkpoints",
    "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train(kWhole).exit_code == 0);
  const std::string out = folder / "model";
  const Outcome exported = RunTroupe({"export", Newest(folder), "--out", out});
  INFO(exported.err);
  REQUIRE(exported.exit_code == 0);
  CHECK_THAT(exported.out, Contains("weights.safetensors, after 3 steps"));
  CHECK_THAT(exported.out, Contains("LlavaForConditionalGeneration, "));
  const Outcome again = RunTroupe({"export", Newest(folder), "--out", out});
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Contains("--out: expected a new or empty folder, got \"" + out + "\""));

  const Outcome looked = RunTroupe({"ckpt", "inspect", out});
  CHECK(looked.exit_code == 0);
  CHECK_THAT(looked.out, Contains("language_model.model....") && Contains("projector"));

  std::vector<std::string> second = {"model.from=hf:" + out, "modules.vision.frozen=true",
                                     "checkpoint.every=2"};
  second.insert(second.end(), kWhole.begin(), kWhole.end());
  REQUIRE(folder.Train(second).exit_code == 0);
  const std::string run = Newest(folder);
  const SafetensorsReader weights(run + "/weights.safetensors");
  CHECK(weights.Find("vision.embeddings.class_embedding") == nullptr);
  CHECK(weights.Find("vision_to_language.linear_1.weight") != nullptr);
  const std::string checkpoint = run + "/checkpoints/step-00000002";
  CHECK(RunTroupe({"ckpt", "inspect", checkpoint}).exit_code == 0);
  CHECK(RunTroupe({"ckpt", "diff", checkpoint, checkpoint}).exit_code == 0);

  REQUIRE(RunTroupe({"export", checkpoint, "--out", folder / "from_checkpoint"}).exit_code == 0);
  const SafetensorsReader before(out + "/model.safetensors");
  const SafetensorsReader after(folder / "from_checkpoint/model.safetensors");
  REQUIRE(after.entries().size() == before.entries().size());
  for (const TensorEntry& entry : before.entries()) {
    INFO(entry.name);
    const Buffer a = before.Read(entry.name);
    const Buffer b = after.Read(entry.name);
    REQUIRE(a.num_bytes() == b.num_bytes());
    const bool same = std::equal(a.data(), a.data() + a.num_bytes(), b.data());
    CHECK(same == entry.name.starts_with("vision_tower."));
  }

  // A resumed run reads the frozen module from its folder, and ends as the first did.
  const std::string whole = BytesOf(run + "/weights.safetensors");
  std::filesystem::remove(run + "/weights.safetensors");
  REQUIRE(RunTroupe({"train", "--resume", run}).exit_code == 0);
  const bool same = BytesOf(run + "/weights.safetensors") == whole;
  CHECK(same);
  std::filesystem::remove(checkpoint + "/language.s0-dp0-cp0-tp0.safetensors");
  const Outcome damaged = RunTroupe({"ckpt", "diff", checkpoint, checkpoint});
  CHECK(damaged.exit_code == 1);
  CHECK_THAT(damaged.err, Contains("language.s0-dp0-cp0-tp0.safetensors: not there, expected "));
}

TEST_CASE("a configuration is written for a folder, and trains", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train(kWhole).exit_code == 0);
  const std::string out = folder / "model";
  REQUIRE(RunTroupe({"export", Newest(folder), "--out", out}).exit_code == 0);
  const std::string ranks = GENERATE("1", "4");
  const std::string file = folder / "init.toml";
  REQUIRE(RunTroupe({"init", out, "--ranks", ranks, "--out", file}).exit_code == 0);
  const Outcome trained = RunTroupe({"train", file, "--set", "data.train=data/shapes/train.json",
                                     "--set", "run.epochs=0.02", "--set", "schedule.global_batch=4",
                                     "--set", "run.dir=" + (folder / "runs")});
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  const Outcome again = RunTroupe({"init", out, "--out", file});
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Contains("exists; expected the name of a new file"));
  const Outcome encoder = RunTroupe({"init", "tests/oracle/clip", "--out", folder / "new.toml"});
  CHECK(encoder.exit_code == 2);
  CHECK_THAT(encoder.err, Contains("expected a language model or a LLaVA"));
}

TEST_CASE("what is no run, and a run that has saved nothing, is not exported", "[cli]") {
  const RunFolder folder;
  const Outcome none = RunTroupe({"export", folder / "none", "--out", folder / "model"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("none: expected a run directory or a checkpoint in one"));
  REQUIRE(folder.Train().exit_code == 0);
  std::filesystem::remove(Newest(folder) + "/weights.safetensors");
  const Outcome empty = RunTroupe({"export", Newest(folder), "--out", folder / "model"});
  CHECK(empty.exit_code == 1);
  CHECK_THAT(empty.err, Contains("expected a checkpoint or weights.safetensors, found neither"));
  CHECK_FALSE(std::filesystem::exists(folder / "model"));
  CHECK(RunTroupe({"ckpt", "inspect", folder / "none"}).exit_code == 2);
}

}  // namespace
}  // namespace troupe
