// Resumes a run from checkpoints that were damaged, in one process and in two.
#include <filesystem>
#include <fstream>
#include <future>

#include <catch2/catch.hpp>

#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Matchers::Contains;

namespace fs = std::filesystem;

/// A run of four steps with checkpoints of step 2 and 4, and how it resumes.
class InterruptedRun {
 public:
  explicit InterruptedRun(const std::string& processes) : processes_(processes) {
    const Outcome outcome = Train(4);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    run_ = folder_.Runs().at(0);
    REQUIRE(fs::exists(FolderOf(2) + "/manifest.json"));
    REQUIRE(fs::exists(FolderOf(4) + "/manifest.json"));
  }

  Outcome Resume(int steps, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--resume", run_});
    return Train(steps, more);
  }

  /// The same as two programs of two nodes. The first one's outcome comes first.
  std::pair<Outcome, Outcome> GoOnAsNodes(int steps, const std::vector<std::string>& more) const {
    RunKey::Generate().WriteFile(folder_ / "key");
    const std::string join = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
    const auto node = [&](const std::string& number) {
      auto arguments = Arguments("node", "configs/shapes_2node.toml", steps);
      arguments.insert(arguments.end(),
                       {"--node", number, "--join", join, "--key-file", folder_ / "key", "--resume",
                        run_, "--set", "run.name=shapes"});
      arguments.insert(arguments.end(), more.begin(), more.end());
      return RunTroupe(arguments);
    };
    auto second = std::async(std::launch::async, node, "1/2");
    Outcome first = node("0/2");
    return {std::move(first), second.get()};
  }

  std::string FolderOf(int step) const {
    return run_ + "/checkpoints/step-0000000" + std::to_string(step);
  }
  std::string ShardOf(int step) const {
    return FolderOf(step) + "/language.s0-dp0-cp0-tp0.safetensors";
  }

  /// Writes `bytes` over the shard of step 4, from its end on backwards if `at` is negative.
  void Overwrite(std::int64_t at, const std::string& bytes) const {
    std::fstream file(ShardOf(4), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at, at < 0 ? std::ios::end : std::ios::beg);
    file << bytes;
    REQUIRE(file.flush());
  }

 private:
  std::vector<std::string> Arguments(const std::string& verb, const std::string& config,
                                     int steps) const {
    return folder_.Arguments(
        verb, config,
        {"run.steps=" + std::to_string(steps), "checkpoint.every=2", "checkpoint.keep=3"});
  }

  Outcome Train(int steps, const std::vector<std::string>& more = {}) const {
    auto arguments = Arguments("train", "configs/shapes.toml", steps);
    arguments.insert(arguments.end(), {"--local", processes_});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTroupe(arguments);
  }

  const RunFolder folder_;
  const std::string processes_;
  std::string run_;
};

/// How often `part` is in `text`.
int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("an unattended job sets a damaged checkpoint aside and resumes from the one before",
          "[cli]") {
  const InterruptedRun run("2");
  run.Overwrite(-4000, std::string(4000, '\0'));
  const Outcome outcome = run.Resume(6, {"--restarts", "1"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("damaged since it was written") &&
                              Contains("troupe: warning: " + run.FolderOf(4) +
                                       ".damaged/language.s0-dp0-cp0-tp0.safetensors: damaged "
                                       "since it was written; this checkpoint is set aside\n") &&
                              Contains("; leaving the damaged state, 1 of 1 times\n"));
  CHECK_THAT(outcome.out, Contains("resuming after step 2, from " + run.FolderOf(2)));
  CHECK(fs::exists(run.FolderOf(4) + ".damaged/manifest.json"));
  CHECK(fs::exists(run.FolderOf(4) + "/manifest.json"));
}

TEST_CASE("the processes of all nodes go on when a checkpoint is damaged", "[cli]") {
  const InterruptedRun run("2");
  run.Overwrite(-4000, std::string(4000, '\0'));
  const auto [first, second] = run.GoOnAsNodes(6, {"--restarts", "1"});
  INFO(first.out << first.err << second.out << second.err);
  CHECK(first.exit_code == 0);
  CHECK(second.exit_code == 0);
  CHECK_THAT(first.err, Contains("; leaving the damaged state, 1 of 1 times\n"));
  CHECK_THAT(first.out, Contains("resuming after step 2, from " + run.FolderOf(2)));
}

TEST_CASE("an unattended job with no sound checkpoint left ends", "[cli]") {
  const InterruptedRun run("2");
  run.Overwrite(-4000, std::string(4000, '\0'));
  fs::remove_all(run.FolderOf(2));
  const Outcome outcome = run.Resume(6, {"--restarts", "1"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("this checkpoint is set aside") && !Contains("resuming"));
  CHECK_THAT(outcome.err, EndsWith(" to resume from the checkpoint before it\n"));
}

TEST_CASE("tensors of a checkpoint that were damaged end the resumed job before its first step",
          "[cli]") {
  for (const char* processes : {"1", "2"}) {
    const InterruptedRun run(processes);
    run.Overwrite(-4000, std::string(4000, '\0'));
    const Outcome refused = run.Resume(6);
    INFO(refused.out << refused.err);
    CHECK(refused.exit_code == 1);
    CHECK_THAT(
        refused.err,
        Contains(run.FolderOf(4) + ": tensor ") &&
            Contains(" was damaged since it was written, in language.s0-dp0-cp0-tp0.safetensors") &&
            Contains("; remove " + run.FolderOf(4) + " to resume from the checkpoint before it"));
    CHECK(Count(refused.err, "was damaged since") == 1);
    CHECK(Count(refused.out, "step 5") == 0);
    CHECK_THAT(refused.err, !Contains("resume after step"));

    fs::remove_all(run.FolderOf(4));
    const Outcome resumed = run.Resume(6);
    INFO(resumed.out << resumed.err);
    CHECK(resumed.exit_code == 0);
    CHECK_THAT(resumed.out, Contains("resuming after step 2, from " + run.FolderOf(2)));
  }
}

TEST_CASE("a checkpoint whose header is damaged is passed over for the one before, with a line",
          "[cli]") {
  const InterruptedRun run("2");
  std::string damage;
  SECTION("a header of length 0") {
    run.Overwrite(0, std::string(8, '\0'));
    damage = run.ShardOf(4) + ": header does not begin with '{'";
  }
  SECTION("the shard of another step") {
    fs::copy_file(run.ShardOf(2), run.ShardOf(4), fs::copy_options::overwrite_existing);
    damage = run.ShardOf(4) + ": its header has step \"2\", expected \"4\"";
  }
  const Outcome resumed = run.Resume(6);
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, Contains("warning: " + damage + ": the checkpoint of step 4 is skipped"));
  CHECK(Count(resumed.err, "is skipped") == 1);
  CHECK_THAT(resumed.out, Contains("resuming after step 2, from " + run.FolderOf(2)));

  // What was passed over has been written again.
  const Outcome again = run.Resume(8);
  INFO(again.out << again.err);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, Contains("resuming after step 6, from " + run.FolderOf(6)));
  fs::remove_all(run.FolderOf(8));
  fs::remove_all(run.FolderOf(6));
  CHECK_THAT(run.Resume(8).out, Contains("resuming after step 4, from " + run.FolderOf(4)));
}

}  // namespace
}  // namespace troupe
