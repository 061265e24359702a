#include "checkpoint/run_checkpoints.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/sharded.hpp"
#include "tests/checkpoint/fake_program.hpp"
#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// A run with checkpoints of one shard.
class Run {
 public:
  const std::string& folder() const { return folder_; }
  std::string FolderOf(std::int64_t step) const { return CheckpointFolder(folder_, step); }

  StoredShard WriteShardOf(std::int64_t step) const {
    return WriteShard(FakeProgram(shards_[0], 1, true), shards_[0], {FolderOf(step), step});
  }
  void Write(std::int64_t step) const {
    const StoredShard stored = WriteShardOf(step);
    WriteManifest(FolderOf(step), MakeManifest({.step = step}, {{shards_[0], stored}}));
  }
  std::string ShardOf(std::int64_t step) const {
    return FolderOf(step) + "/" + ShardFileName(shards_[0]);
  }
  /// Names in its folder of checkpoints.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ + "/checkpoints")) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  const TemporaryDirectory directory_;
  const std::string folder_ = directory_.File("run");
  const std::vector<ShardAddress> shards_ = FakeShards(1, 1);
};

using Names = std::vector<std::string>;

TEST_CASE("the folder of a checkpoint sorts by its step", "[checkpoint]") {
  CHECK(CheckpointFolder("runs/a", 120) == "runs/a/checkpoints/step-00000120");
  CHECK(CheckpointFolder("runs/a", 1234567890) == "runs/a/checkpoints/step-1234567890");
}

TEST_CASE("a run without checkpoints has no newest one", "[checkpoint]") {
  const Run run;
  CHECK_FALSE(NewestCheckpoint(run.folder()));
  RemoveOldCheckpoints(run.folder(), 1);
  fs::create_directories(run.folder() + "/checkpoints");
  CHECK_FALSE(NewestCheckpoint(run.folder()));
}

TEST_CASE("the newest checkpoint is that of the highest step", "[checkpoint]") {
  const Run run;
  for (const std::int64_t step : {100'000'000, 120, 99'999'999}) run.Write(step);
  CHECK(NewestCheckpoint(run.folder()) == run.FolderOf(100'000'000));
}

TEST_CASE("what an interruption left is not taken for a checkpoint", "[checkpoint]") {
  const Run run;
  run.Write(120);
  run.Write(130);
  const std::string manifest = run.FolderOf(130) + "/manifest.json";
  SECTION("between the shards and the manifest") { run.WriteShardOf(140); }
  SECTION("before the manifest took its name") {
    run.WriteShardOf(140);
    fs::copy_file(manifest, run.FolderOf(140) + "/manifest.json.tmp");
  }
  SECTION("with a manifest of another step") {
    run.WriteShardOf(140);
    fs::copy_file(manifest, run.FolderOf(140) + "/manifest.json");
  }
  SECTION("with a broken manifest") {
    run.WriteShardOf(140);
    WriteBytes(run.FolderOf(140) + "/manifest.json", ReadBytes(manifest).substr(0, 40));
  }
  SECTION("with a file that is gone") {
    run.Write(140);
    fs::remove(run.ShardOf(140));
  }
  SECTION("with a file that is too short") {
    run.Write(140);
    fs::resize_file(run.ShardOf(140), 512);
  }
  SECTION("under another name") {
    run.Write(140);
    fs::rename(run.FolderOf(140), run.folder() + "/checkpoints/step-140");
  }
  SECTION("behind a link") {
    run.Write(140);
    fs::rename(run.FolderOf(140), run.folder() + "/elsewhere");
    fs::create_directory_symlink(run.folder() + "/elsewhere", run.FolderOf(140));
  }
  SECTION("with the shard of another step") {
    run.Write(140);
    fs::copy_file(run.ShardOf(130), run.ShardOf(140), fs::copy_options::overwrite_existing);
  }
  CHECK(NewestCheckpoint(run.folder()) == run.FolderOf(130));
}

TEST_CASE(
    "whatever a header of the newest checkpoint becomes, the one before is chosen, with a line",
    "[checkpoint]") {
  const Run run;
  run.Write(130);
  run.Write(140);
  const std::string path = run.ShardOf(140);
  const std::string whole = ReadBytes(path);
  const auto skipped_with = [&](std::size_t at, const std::string& bytes) {
    WriteBytes(path, std::string(whole).replace(at, bytes.size(), bytes));
    std::vector<std::string> skipped;
    const auto note = [&](const std::string& line) { skipped.push_back(line); };
    CHECK(NewestCheckpoint(run.folder(), note) == run.FolderOf(130));
    REQUIRE(skipped.size() == 1);
    CHECK_THAT(skipped[0], EndsWith(": the checkpoint of step 140 is skipped"));
    return skipped[0];
  };
  const std::string length_0(8, '\0');
  CHECK_THAT(skipped_with(0, length_0), StartsWith(path + ": header does not begin with '{': "));
  CHECK_THAT(skipped_with(7, "\x80"), StartsWith(path + ": header length is 92233720368547"));
  CHECK_THAT(skipped_with(8, "not JSON"), StartsWith(path + ": header does not begin with '{': "));
  CHECK_THAT(skipped_with(9, "not JSON"), StartsWith(path + ": header is not valid JSON at "));
  CHECK_THAT(skipped_with(whole.find(R"("step":"140")"), R"("step":"139")"),
             StartsWith(path + R"(: its header has step "139", expected "140")"));
  fs::resize_file(path, 100);
  CHECK_THAT(skipped_with(whole.size() - 1, "12"), StartsWith(path + ": "));
  WriteBytes(path, whole);
  CHECK(NewestCheckpoint(run.folder()) == run.FolderOf(140));
}

TEST_CASE("a run whose every checkpoint is damaged is not silently begun again", "[checkpoint]") {
  const Run run;
  run.WriteShardOf(120);  // an interruption of the first checkpoint alone is no damage
  CHECK_FALSE(NewestCheckpoint(run.folder()));
  run.Write(130);
  fs::remove(run.ShardOf(130));
  CHECK_THROWS_WITH(NewestCheckpoint(run.folder()),
                    run.folder() +
                        "/checkpoints: every checkpoint is damaged; remove this folder "
                        "to train from the beginning");
}

TEST_CASE("a damaged checkpoint that is written again does not count until it is whole",
          "[checkpoint]") {
  const Run run;
  run.Write(130);
  run.Write(140);
  const std::string sound = ReadBytes(run.ShardOf(140));
  WriteBytes(run.ShardOf(140), std::string(sound).replace(8, 4, "what"));
  CHECK(NewCheckpointFolder(run.folder(), 140) == run.FolderOf(140));
  WriteBytes(run.ShardOf(140), sound);
  CHECK(NewestCheckpoint(run.folder()) == run.FolderOf(130));
  CHECK(NewCheckpointFolder(run.folder(), 150) == run.FolderOf(150));
  CHECK_FALSE(fs::exists(run.FolderOf(150)));
}

TEST_CASE("old checkpoints are removed beyond the newest few", "[checkpoint]") {
  const Run run;
  for (const std::int64_t step : {10, 20, 30, 40}) run.Write(step);
  RemoveOldCheckpoints(run.folder(), 5);
  CHECK(run.Names().size() == 4);
  RemoveOldCheckpoints(run.folder(), 2);
  CHECK(run.Names() == Names{"step-00000030", "step-00000040"});
  CHECK(NewestCheckpoint(run.folder()) == run.FolderOf(40));
  CHECK_THROWS_AS(RemoveOldCheckpoints(run.folder(), 0), std::invalid_argument);
  CHECK(run.Names().size() == 2);
}

TEST_CASE("incomplete checkpoints go once a newer one is complete, and count for nothing",
          "[checkpoint]") {
  const Run run;
  run.WriteShardOf(5);
  RemoveOldCheckpoints(run.folder(), 1);
  CHECK(run.Names() == Names{"step-00000005"});  // it may be being written
  run.Write(10);
  run.WriteShardOf(20);
  run.Write(30);
  run.WriteShardOf(40);
  WriteBytes(run.folder() + "/checkpoints/notes", "not ours");
  RemoveOldCheckpoints(run.folder(), 2);
  CHECK(run.Names() == Names{"notes", "step-00000010", "step-00000030", "step-00000040"});
}

TEST_CASE("a run directory that the system refuses is named with its reason", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string run = directory.File(std::string(300, 'x'));
  CHECK_THROWS_WITH(NewestCheckpoint(run), run +
                                               "/checkpoints: cannot read: File name too long; "
                                               "choose a shorter name");
  CHECK_THROWS_WITH(NewCheckpointFolder(run, 1),
                    StartsWith(run) && EndsWith("/manifest.json: cannot remove: File name too "
                                                "long; choose a shorter name"));
  WriteBytes(directory.File("file"), "");
  CHECK_FALSE(NewestCheckpoint(directory.File("file")));
  CHECK_THROWS_WITH(
      WriteShard(FakeProgram({}, 1, true), {}, {directory.File("file") + "/step-1", 1}),
      directory.File("file") +
          "/step-1: cannot create: Not a directory; a part of the path is a file");
}

TEST_CASE("a checkpoint loses its manifest before anything else", "[checkpoint]") {
  const Run run;
  run.Write(10);
  run.Write(20);
  // A folder inside that cannot be emptied stops the removal half way. Root could; it is skipped.
  const std::string locked = run.FolderOf(10) + "/locked";
  fs::create_directory(locked);
  WriteBytes(locked + "/a", "a");
  fs::permissions(locked, fs::perms::owner_read | fs::perms::owner_exec);
  if (geteuid() != 0) {
    CHECK_THROWS_AS(RemoveOldCheckpoints(run.folder(), 1), std::runtime_error);
    CHECK(fs::exists(locked));
    CHECK_FALSE(fs::exists(run.FolderOf(10) + "/manifest.json"));
  }
  fs::permissions(locked, fs::perms::owner_all);
  RemoveOldCheckpoints(run.folder(), 1);
  CHECK(run.Names() == Names{"step-00000020"});
}

TEST_CASE("files on the disks of other nodes are not missed, those of this disk are",
          "[checkpoint]") {
  const std::vector<ShardAddress> shards = FakeShards(1, 2);
  REQUIRE(shards.size() >= 2);
  const TemporaryDirectory directory;
  const std::vector<std::string> runs = {directory.File("n0"), directory.File("n1")};
  for (const std::int64_t step : {1, 2}) {
    std::vector<WrittenShard> written;
    for (const std::size_t disk : {0U, 1U}) {
      const std::string folder = CheckpointFolder(runs[disk], step);
      StoredShard stored =
          WriteShard(FakeProgram(shards[disk], 1, true), shards[disk], {folder, step});
      stored.disk = "n" + std::to_string(disk);
      written.push_back({shards[disk], stored});
    }
    const std::string text = FormatManifest(MakeManifest({.step = step}, written));
    for (const std::size_t disk : {0U, 1U}) {
      const std::string folder = CheckpointFolder(runs[disk], step);
      PublishCheckpoint(folder, text, "n" + std::to_string(disk));
      CHECK(NewestCheckpoint(runs[disk]) == folder);
      CHECK(DamagedFile(folder) == "");
      const std::vector<CheckpointFile> here = FilesHere(folder, RequireManifest(folder));
      REQUIRE(here.size() == 1);
      CHECK(here[0].name == ShardFileName(shards[disk]));
      CHECK(ManifestSum(folder) == ManifestSum(CheckpointFolder(runs[0], step)));
    }
  }
  for (const std::size_t disk : {0U, 1U}) {
    const std::string newest = CheckpointFolder(runs[disk], 2);
    fs::remove(newest + "/" + ShardFileName(shards[disk]));
    CHECK(NewestCheckpoint(runs[disk]) == CheckpointFolder(runs[disk], 1));
    CHECK_THAT(AllCheckpoints(runs[disk]).front().fault,
               EndsWith(" bytes, on the disk of n" + std::to_string(disk)));
  }
  KeepCheckpoints(runs[0], {2});
  CHECK_FALSE(fs::exists(CheckpointFolder(runs[0], 1)));
  CHECK(fs::exists(CheckpointFolder(runs[0], 2)));
}

}  // namespace
}  // namespace troupe
