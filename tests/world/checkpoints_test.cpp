// A run writes checkpoints, and its machine loses its power several times. The next start must find
// a checkpoint that is whole and at least as new as the last complete one. The product writes,
// publishes, removes, chooses and reads the checkpoints; only the loss of power is simulated.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <set>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/sharded.hpp"
#include "files/output_file.hpp"
#include "tests/checkpoint/fake_program.hpp"
#include "tests/checkpoint/temporary_directory.hpp"
#include "tests/world/recorded_disk.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using testing::CrashedDisk;
using testing::DiskCall;
using testing::DiskFault;
using testing::DiskTree;
using testing::RecordedDisk;

const std::vector<ShardAddress> kShards = FakeShards(1, 2);

/// What a wrong program would do.
enum class Bug {
  kNone,
  kManifestFirst,    ///< it vouches for data that is not there
  kManifestInPlace,  ///< written under its name
  kNoFlush,          ///< of files
  kNoFolderFlush,    ///< of the folders that have them
  kRemovesFirst,     ///< the old checkpoints, before the new one is complete
  kReportsEarly,     ///< that a checkpoint is complete, before its manifest is written
};
constexpr Bug kBugs[] = {Bug::kManifestFirst, Bug::kManifestInPlace, Bug::kNoFlush,
                         Bug::kNoFolderFlush, Bug::kRemovesFirst,    Bug::kReportsEarly};

/// The state of a shard after `step` in attempt `attempt` to write it. A run that is repeated computes
/// the same; here it does not, so that a mixture of two attempts shows.
FakeProgram StateAfter(const ShardAddress& shard, std::int64_t step, std::int64_t attempt) {
  FakeProgram program(shard, 2, true);
  for (auto& [kind, pieces] : program.pieces) {
    for (const TensorPiece& piece : pieces) {
      const double change = static_cast<double>(step) + static_cast<double>(attempt) / 64.0;
      for (std::int64_t i = 0; i < piece.value.num_elements(); ++i) {
        if (piece.value.dtype() == DType::kFloat32) {
          piece.value.as<float>()[i] += static_cast<float>(change);
        } else {
          piece.value.as<double>()[i] += change;
        }
      }
    }
  }
  return program;
}

class World {
 public:
  World(std::uint64_t seed, Bug bug) : random_(seed), bug_(bug) {}

  /// Returns what is wrong; "" if nothing is.
  std::string Run() {
    keep_ = Pick(1, 2);
    keep_every_ = Pick(0, 3);
    for (std::int64_t life = 1; life <= 4 && error_.empty(); ++life) Live(life);
    return error_;
  }
  const std::vector<std::string>& story() const { return story_; }

 private:
  std::int64_t Pick(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  std::string Folder() const { return scratch_.File("life-" + std::to_string(life_)); }

  /// A start, some checkpoints, and the loss of the power.
  void Live(std::int64_t life) {
    const std::string disk_folder = Folder();
    const std::string run = disk_folder + "/runs/one";
    fs::create_directories(disk_folder);
    std::vector<DiskCall> calls;
    DiskTree before;
    {
      RecordedDisk disk(disk_folder);
      disk.forgets_flushes = bug_ == Bug::kNoFlush;
      disk.forgets_folder_flushes = bug_ == Bug::kNoFolderFlush;
      if (Pick(0, 3) == 0) {
        constexpr int kErrors[] = {ENOSPC, EIO, EROFS};
        disk.fault =
            DiskFault{static_cast<std::size_t>(Pick(0, 60)), kErrors[Pick(0, 2)], Pick(0, 1) == 1};
      }
      try {
        MakeFolders(run);
        for (std::int64_t step = newest_ + 1; step <= newest_ + 3; ++step) {
          begun_[step].insert(life);
          Write(disk, run, step, life);
        }
      } catch (const std::runtime_error& error) {  // the job ends
        if (!disk.fault) error_ = std::string("without a fault: ") + error.what();
      }
      calls = disk.calls();
      before = disk.before();
    }
    const auto count = static_cast<std::size_t>(Pick(0, std::ssize(calls)));
    for (std::size_t i = 0; i < count; ++i) {
      story_.push_back(calls[i].text);
      if (calls[i].kind == DiskCall::Kind::kMark) complete_ = std::max(complete_, calls[i].mark);
    }
    story_.push_back("the power is lost");
    ++life_;
    CrashedDisk(before, calls, count, random_).WriteTo(Folder());
    fs::remove_all(disk_folder);
    if (error_.empty()) StartAgain();
  }

  void Write(RecordedDisk& disk, const std::string& run, std::int64_t step, std::int64_t life) {
    const std::string folder = NewCheckpointFolder(run, step);
    if (bug_ == Bug::kRemovesFirst) KeepCheckpoints(run, {});
    std::vector<WrittenShard> written;
    for (const ShardAddress& shard : kShards) {
      const FakeProgram program = StateAfter(shard, step, life);
      const TemporaryDirectory elsewhere;
      const std::string into = bug_ == Bug::kManifestFirst ? elsewhere.File("early") : folder;
      written.push_back({shard, WriteShard(program, shard, {into, step})});
    }
    const std::string manifest = FormatManifest(MakeManifest({.step = step}, written));
    if (bug_ == Bug::kReportsEarly) disk.Mark(step);
    if (bug_ == Bug::kManifestFirst || bug_ == Bug::kManifestInPlace) {
      WriteLoosely(run, folder, manifest);
    } else {
      PublishCheckpoint(folder, manifest, "");
    }
    if (bug_ == Bug::kManifestFirst) {
      for (const ShardAddress& shard : kShards) {
        WriteShard(StateAfter(shard, step, life), shard, {folder, step});
      }
    }
    RemoveOldCheckpoints(run, keep_, keep_every_);
    disk.Mark(step);
  }
  static void WriteLoosely(const std::string& run, const std::string& folder,
                           const std::string& manifest) {
    fs::create_directories(folder);
    OutputFile file(folder + "/manifest.json", FileOpening::kInPlace);
    file.Write(std::as_bytes(std::span(manifest)));
    file.Sync();
    file.Close();
    for (const std::string& at : {folder, run + "/checkpoints", run}) SyncDirectory(at);
  }

  /// The next start: chooses a checkpoint and reads it.
  void StartAgain() {
    newest_ = 0;
    try {
      const auto folder = NewestCheckpoint(Folder() + "/runs/one");
      if (folder) newest_ = RequireManifest(*folder).run.step;
      if (newest_ < complete_) {
        error_ = "step " + std::to_string(newest_) + " is the newest, step " +
                 std::to_string(complete_) + " was complete";
      } else if (folder) {
        Read(*folder);
      }
    } catch (const std::runtime_error& error) {
      error_ = error.what();
    }
    complete_ = newest_;  // a step that is begun anew is not complete
    story_.push_back("goes on after step " + std::to_string(newest_));
  }
  void Read(const std::string& folder) {
    std::vector<StoredTensor> read;
    std::vector<FakeProgram> programs;
    for (const ShardAddress& shard : kShards) {
      FakeProgram& program = programs.emplace_back(shard, 2);
      const LoadedShard loaded = ReadShard(program, shard, {folder, {}});
      read.insert(read.end(), loaded.tensors.begin(), loaded.tensors.end());
    }
    CheckDigests({folder}, read);
    for (const std::int64_t life : begun_[newest_]) {
      bool same = true;
      for (std::size_t i = 0; i < kShards.size(); ++i) {
        same &= programs[i].Values() == StateAfter(kShards[i], newest_, life).Values();
      }
      if (same) return;
    }
    error_ = folder + " holds what was never written";
  }

  std::mt19937_64 random_;
  const Bug bug_;
  const TemporaryDirectory scratch_{"/dev/shm"};
  std::int64_t life_ = 0;
  std::int64_t keep_ = 1;
  std::int64_t keep_every_ = 0;
  std::int64_t newest_ = 0;                               ///< step from which this life goes on
  std::int64_t complete_ = 0;                             ///< the newest that was complete
  std::map<std::int64_t, std::set<std::int64_t>> begun_;  ///< lives that have begun to write a step
  std::vector<std::string> story_;
  std::string error_;
};

/// Returns the first of the seeds in which something is wrong.
std::optional<std::uint64_t> FirstWrong(Bug bug, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t seed = from; seed < from + count; ++seed) {
    if (!World(seed, bug).Run().empty()) return seed;
  }
  return std::nullopt;
}

/// Tells what happened in a seed.
std::string Replay(std::uint64_t seed, Bug bug) {
  World world(seed, bug);
  const std::string error = world.Run();
  std::string text =
      "seed " + std::to_string(seed) + ": " + (error.empty() ? "right" : error) + "\n";
  for (const std::string& line : world.story()) text += "  " + line + "\n";
  return text;
}

}  // namespace

TEST_CASE("a checkpoint outlives the loss of power at any call") {
  const auto wrong = FirstWrong(Bug::kNone, 0, 500);
  if (wrong) FAIL(Replay(*wrong, Bug::kNone));
}

TEST_CASE("each planted bug is found") {
  for (const Bug bug : kBugs) {
    CAPTURE(static_cast<int>(bug));
    const auto wrong = FirstWrong(bug, 0, 1000);
    CHECK(wrong);
  }
}

TEST_CASE("many seeds: TROUPE_SEEDS of them, from 0; or the one that TROUPE_SEED names",
          "[.seeds]") {
  if (const char* const one = std::getenv("TROUPE_SEED")) {
    std::cout << Replay(std::strtoull(one, nullptr, 10), Bug::kNone);
    return;
  }
  const char* const many = std::getenv("TROUPE_SEEDS");
  const auto wrong = FirstWrong(Bug::kNone, 0, many ? std::strtoull(many, nullptr, 10) : 100'000);
  if (wrong) FAIL(Replay(*wrong, Bug::kNone));
}

}  // namespace troupe
