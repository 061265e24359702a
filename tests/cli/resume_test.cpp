// A run that was interrupted resumes where its checkpoint was saved, with the numbers of one that
// was not.
#include "app/resume.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "configs/loader.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Words = std::vector<std::string>;

Words Train(const ScratchFolder& folder, const std::string& local) {
  return {"train",   "configs/shapes.toml",
          "--set",   "run.steps=10",
          "--set",   "run.evaluate_every=0",
          "--set",   "run.dir=" + (folder / "runs"),
          "--local", local};
}

/// The only run in `folder`.
std::filesystem::path RunIn(const ScratchFolder& folder) { return FindRun(folder / "runs/latest"); }

}  // namespace

TEST_CASE("an interrupted run is resumed with the numbers of an undisturbed one", "[cli]") {
  // With virtual stages a rank has several shards to save and to read.
  const std::string schedule = GENERATE("schedule.kind=1f1b", "schedule.kind=interleaved");
  const auto arguments = [&](const ScratchFolder& into) {
    auto words = Train(into, "1");
    words.insert(words.end(), {"--set", schedule});
    return words;
  };
  const ScratchFolder whole;
  REQUIRE(RunTroupe(arguments(whole)).exit_code == 0);
  const ScratchFolder folder;
  ProcessOptions interrupted;
  interrupted.interrupt_at = "step 3/10";
  CHECK(RunTroupe(arguments(folder), interrupted).exit_code == 130);
  auto words = arguments(folder);
  words.insert(words.end(), {"--resume", RunIn(folder).string()});
  const Outcome resumed = RunTroupe(words);
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.out.find("resuming after step ") != std::string::npos);
  const bool equal = BytesOf(RunIn(folder) / "weights.safetensors") ==
                     BytesOf(RunIn(whole) / "weights.safetensors");
  CHECK(equal);
}

TEST_CASE("another configuration, or a run whose directory is in use, is not resumed", "[cli]") {
  const ScratchFolder folder;
  auto words = Train(folder, "1");
  words.insert(words.end(), {"--set", "run.steps=2", "--set", "checkpoint.every=2"});
  REQUIRE(RunTroupe(words).exit_code == 0);
  const std::string run = RunIn(folder).string();
  const std::string metrics = BytesOf(run + "/metrics.jsonl");
  words = Train(folder, "1");
  words.insert(words.end(), {"--resume", run});
  auto other = words;
  other.insert(other.end(), {"--set", "run.seed=99"});
  const Outcome seeded = RunTroupe(other);
  CHECK(seeded.exit_code == 2);
  CHECK(seeded.err.find("the configuration differs: run.seed is 99, that run has ") !=
        std::string::npos);
  other = words;
  other.insert(other.end(), {"--set", "run.steps=1"});
  const Outcome shorter = RunTroupe(other);
  CHECK(shorter.exit_code == 2);
  CHECK(shorter.err == "troupe: --resume " + run +
                           ": expected run.steps of at least 2, which it has trained, got 1\n");
  CHECK_FALSE(std::filesystem::exists(run + "/trace-2"));
  {
    const RunDirectory in_use({}, BytesOf(run + "/resolved.toml"), run);
    const Outcome second = RunTroupe(words);
    CHECK(second.exit_code == 1);
    CHECK(second.err == "troupe: " + run + ": another run is using this directory\n");
  }
  CHECK(BytesOf(run + "/metrics.jsonl") == metrics);
  CHECK(RunTroupe(words).exit_code == 0);
}

TEST_CASE("a run resumes with other rounding and other ways to run, and says the former", "[cli]") {
  const ScratchFolder folder;
  auto words = Train(folder, "1");
  words.insert(words.end(), {"--set", "run.steps=1", "--set", "checkpoint.every=1"});
  REQUIRE(RunTroupe(words).exit_code == 0);
  const std::string run = RunIn(folder).string();
  words = Train(folder, "1");
  words.insert(words.end(), {"--set", "run.steps=2", "--resume", run});
  words.insert(words.end(), {"--set", "run.precision=bfloat16", "--set",
                             "modules.language.recompute=full", "--set", "run.tf32=true"});
  const Outcome resumed = RunTroupe(words);
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Catch::Contains("resuming after step 1") && Catch::Contains("step 2/2"));
  CHECK_THAT(resumed.err,
             Catch::Contains("the same state, rounded otherwise from here on: "
                             "run.precision is \"bfloat16\", that run has \"float32\"; "
                             "run.tf32 is true, that run has false\n") &&
                 !Catch::Contains("recompute"));
}

TEST_CASE("the role of a key decides whether a run may resume with another value", "[cli]") {
  const std::string colocated = "configs/shapes_colocated.toml";
  const Config before = LoadConfig(colocated).config;
  const auto check = [&](const std::vector<std::string>& overrides) {
    return CheckResume(LoadConfig(colocated, overrides), before);
  };
  const ResumeCheck elsewhere =
      check({"modules.vision.offload=state", "modules.vision.offload_ahead=1",
             "modules.language.recompute=attention", "edges.vision.language.credits=2",
             "run.steps=900", "trace.messages=false", "transport.spin_us=5"});
  CHECK(elsewhere.refusal.empty());
  CHECK(elsewhere.rounding.empty());
  const ResumeCheck device =
      check({"cluster.backend=cuda", "cluster.ranks_per_gpu=4", "cluster.nodes=2"});
  CHECK(device.refusal.empty());
  CHECK(device.rounding == "cluster.backend is \"cuda\", that run has \"cpu\"");
  const ResumeCheck cut = check({"schedule.microbatches=4", "modules.language.layout.tp=2",
                                 "modules.language.layout.dp=4", "run.precision=float64"});
  CHECK(cut.refusal.empty());
  CHECK_THAT(cut.layout, Catch::Contains("modules.language.layout.tp is 2, that run has 4") &&
                             Catch::Contains("schedule.microbatches is 4, that run has "));
  CHECK(cut.rounding == "run.precision is \"float64\", that run has \"float32\"");
}

TEST_CASE("what is trained or read is another only if that is asked for by name", "[cli]") {
  const std::string colocated = "configs/shapes_colocated.toml";
  const Config before = LoadConfig(colocated).config;
  const auto check = [&](const std::string& override, const std::set<std::string>& accepted) {
    return CheckResume(LoadConfig(colocated, {override}), before, {accepted, false}).refusal;
  };
  for (const auto& [override, name] : std::vector<std::pair<const char*, const char*>>{
           {"run.seed=8", "data"},
           {"data.packing=true", "data"},
           {"modules.vision.frozen=true", "vision"},
           {"modules.language.mlp_hidden=256", "language"},
           {"edges.vision.language.through.hidden=64", "vision_to_language"}}) {
    INFO(override);
    CHECK_THAT(check(override, {}), Catch::StartsWith("the configuration differs: "));
    CHECK_THAT(check(override, {"other"}), Catch::StartsWith("the configuration differs: "));
    CHECK(check(override, {name}).empty());
  }
  CHECK(OrdersDataAnew(LoadConfig(colocated, {"run.seed=8"}).config, before));
  CHECK_FALSE(OrdersDataAnew(LoadConfig(colocated, {"schedule.microbatches=2"}).config, before));
  // A new run may tune in its file.
  LoadedConfig tuned = LoadConfig(colocated);
  tuned.config.optimizer.clip_norm = 2;
  CHECK_FALSE(CheckResume(tuned, before).refusal.empty());
  CHECK(CheckResume(tuned, before, {{}, true}).refusal.empty());
}

TEST_CASE("a run that resumes with another configuration keeps those that it had", "[cli]") {
  const ScratchFolder folder;
  auto words = Train(folder, "1");
  words.insert(words.end(), {"--set", "run.steps=2", "--set", "checkpoint.every=2"});
  REQUIRE(RunTroupe(words).exit_code == 0);
  const std::string run = RunIn(folder).string();
  const std::string first = BytesOf(run + "/resolved.toml");
  const auto resume = [&](const std::string& steps, const Words& more) {
    Words again = Train(folder, "1");
    again.insert(again.end(),
                 {"--set", "run.steps=" + steps, "--set", "checkpoint.every=2", "--resume", run});
    again.insert(again.end(), more.begin(), more.end());
    return RunTroupe(again);
  };
  const Outcome cut = resume("4", {"--set", "modules.language.layout={dp=2, pp=2}"});
  INFO(cut.out << cut.err);
  REQUIRE(cut.exit_code == 0);
  CHECK_THAT(cut.err, Catch::Contains("from here on in another layout: "
                                      "modules.language.layout.dp is 2, that run has 1; "
                                      "modules.language.layout.tp is 1, that run has 2"));
  CHECK(BytesOf(run + "/resolved-0.toml") == first);
  CHECK(BytesOf(run + "/resolved-2.toml") == BytesOf(run + "/resolved.toml"));
  // The place in the data counts samples: 2 steps of 32, 2 of 64.
  CHECK(RequireManifest(*NewestCheckpoint(run)).run.data.place == 192);
  const Outcome frozen = resume("6", {"--set", "modules.vision.frozen=true"});
  CHECK(frozen.exit_code == 2);
  CHECK_THAT(frozen.err, Catch::Contains("modules.vision.frozen is true, that run has false"));
  const Outcome accepted =
      resume("6", {"--set", "modules.vision.frozen=true", "--accept", "vision"});
  INFO(accepted.out << accepted.err);
  CHECK(accepted.exit_code == 0);
  CHECK_THAT(accepted.err, Catch::Contains("vision: trained before, frozen from here on without "
                                           "moments: 53 tensors (vision."));
  const Outcome thawed = resume("8", {"--accept", "vision"});
  INFO(thawed.out << thawed.err);
  CHECK(thawed.exit_code == 0);
  CHECK_THAT(thawed.err, Catch::Contains("vision: frozen before, trained from here on with "
                                         "moments of 0: 53 tensors (vision."));
}

TEST_CASE("a run is resumed without CONFIG, from any folder, and tuned where --set says so",
          "[cli]") {
  const ScratchFolder folder;
  auto words = Train(folder, "1");
  words.insert(words.end(), {"--set", "run.steps=1", "--set", "checkpoint.every=1"});
  REQUIRE(RunTroupe(words).exit_code == 0);
  const std::string run = RunIn(folder).string();
  ProcessOptions elsewhere;
  elsewhere.working_directory = folder.path();
  const Outcome resumed =
      RunTroupe({"train", "--resume", "latest", "--set", "run.steps=2", "--set",
                 "optimizer.learning_rate=0.0005", "--set", "optimizer.betas=[0.9, 0.99]", "--set",
                 "modules.vision.optimizer.weight_decay=0.1"},
                elsewhere);
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Catch::Contains("run directory runs/") &&
                              Catch::Contains("resuming after step 1") &&
                              Catch::Contains("step 2/2"));
  const std::string named =
      "--resume runs/" + RunIn(folder).filename().string() + ": from here on ";
  CHECK_THAT(
      resumed.err,
      Catch::Contains(named + "modules.vision.optimizer.weight_decay is 0.1, that run does "
                              "not set it\n") &&
          Catch::Contains(named + "optimizer.betas is [0.9, 0.99], that run has [0.9, 0.95]\n") &&
          Catch::Contains(named + "optimizer.learning_rate is 5e-04, that run has 0.002\n"));
  CHECK(LoadConfig(run + "/resolved.toml").config.optimizer.learning_rate == 0.0005);
  const Outcome other = RunTroupe({"train", "--resume", run, "--set", "run.seed=99"});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Catch::Contains("the configuration differs: run.seed is 99"));
}

TEST_CASE("what may be tuned differs by --set, not by another file", "[cli]") {
  const Config before = LoadConfig("configs/shapes.toml").config;
  const ResumeCheck tuned = CheckResume(
      LoadConfig("configs/shapes.toml", {"optimizer.clip_norm=2", "data.held_out="}), before);
  CHECK(tuned.refusal.empty());
  REQUIRE(tuned.tuned.size() == 2);
  CHECK(tuned.tuned[1] == "optimizer.clip_norm is 2.0, that run has 1.0");
  LoadedConfig file = LoadConfig("configs/shapes.toml");
  file.config.optimizer.clip_norm = 2;
  CHECK(CheckResume(file, before).refusal ==
        "the configuration differs: optimizer.clip_norm is 2.0, that run has 1.0; to change that "
        "from here on, use --set");
}

TEST_CASE("what cannot be resumed is refused", "[cli]") {
  const ScratchFolder folder;
  auto words = Train(folder, "1");
  words.insert(words.end(), {"--resume", folder / "runs"});
  const Outcome outcome = RunTroupe(words);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err == "troupe: --resume " + (folder / "runs") +
                           ": expected a run directory with a complete checkpoint, found no such "
                           "directory\n");
  std::filesystem::create_directory(folder / "runs");
  CHECK_THAT(RunTroupe(words).err, Catch::Contains("found none in it (checkpoint.every, "));
}

}  // namespace troupe
