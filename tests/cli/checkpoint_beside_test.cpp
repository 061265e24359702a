// Asynchronous checkpoints equal synchronous ones.
#include <map>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

/// By step: the digests of all tensors in a run's checkpoints.
using Saved = std::map<std::int64_t, std::map<std::string, SavedTensor>>;

Saved SavedBy(std::vector<std::string> settings, const std::string& config, bool async) {
  const ScratchFolder folder;
  settings.insert(settings.end(), {"run.steps=6", "run.evaluate_every=2", "checkpoint.every=1",
                                   "checkpoint.keep=9", "run.dir=" + (folder / "runs"),
                                   std::string("checkpoint.async=") + (async ? "true" : "false")});
  std::vector<std::string> words = {"train", "configs/" + config};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  const Outcome outcome = RunTroupe(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  Saved saved;
  for (const FoundCheckpoint& found : AllCheckpoints(FindRun(folder / "runs/latest"))) {
    REQUIRE(found.fault == "");
    CHECK(DamagedFile(found.folder) == "");
    for (const auto& [name, tensor] : RequireManifest(found.folder).tensors) {
      SavedTensor digest = tensor;
      digest.files.clear();
      saved[found.step][name] = digest;
    }
  }
  return saved;
}

}  // namespace

TEST_CASE("asynchronous checkpoints equal synchronous ones bit for bit", "[cli]") {
  const auto [config,
              settings] = GENERATE(values<std::pair<std::string, std::vector<std::string>>>({
      {"shapes.toml", {}},
      {"shapes.toml", {"modules.vision.frozen=true", "run.precision=bfloat16"}},
      {"shapes.toml",
       {"modules.language.layout={dp=2, pp=2}", "optimizer.shard=data", "optimizer.clip_norm=0.0"}},
      {"shapes_colocated.toml", {"modules.vision.offload=state"}},
      {"shapes_colocated.toml",
       {"modules.vision.offload=parameters", "modules.vision.frozen=true"}},
      {"shapes_colocated.toml", {"modules.vision.offload=state", "modules.vision.frozen=true"}},
  }));
  const Saved waiting = SavedBy(settings, config, false);
  const Saved beside = SavedBy(settings, config, true);
  REQUIRE(waiting.size() == 6);
  // One that is still being written delays the next; the last is always there.
  REQUIRE(beside.size() >= 2);
  CHECK(beside.contains(6));
  for (const auto& [step, tensors] : beside) {
    INFO("step " << step);
    CHECK((tensors == waiting.at(step)));
  }
}

}  // namespace troupe
