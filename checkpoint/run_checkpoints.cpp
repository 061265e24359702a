#include "checkpoint/run_checkpoints.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/sharded.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/sha256.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 8;  ///< at least: names sort by step up to a hundred million

std::string NameOf(std::int64_t step) {
  const std::string digits = std::to_string(step);
  const std::size_t zeros = kDigits - std::min(kDigits, digits.size());
  return std::string(kPrefix) + std::string(zeros, '0') + digits;
}

/// The reverse of NameOf; nothing for any other text.
std::optional<std::int64_t> StepOf(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (parsed.ec != std::errc() || step < 0 || NameOf(step) != name) return std::nullopt;
  return step;
}

struct Found {
  std::int64_t step = 0;
  std::string folder;
};

/// All folders with names of checkpoints, newest first.
std::vector<Found> AllFolders(const std::string& run_folder) {
  std::vector<Found> all;
  const fs::path checkpoints = fs::path(run_folder) / "checkpoints";
  if (!IsThere(checkpoints.string())) return all;
  std::error_code error;
  fs::directory_iterator entry(checkpoints, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto step = StepOf(entry->path().filename().string());
    // A link leads to foreign files.
    std::error_code unknown;
    if (step && fs::is_directory(entry->symlink_status(unknown))) {
      all.push_back({.step = *step, .folder = entry->path().string()});
    }
  }
  if (error) throw FileError(checkpoints.string(), "read", error);
  std::ranges::sort(all, std::greater<>(), &Found::step);
  return all;
}

/// The reason why it is not a complete checkpoint; nothing if it is.
std::optional<std::string> FaultOf(const Found& found) {
  try {
    const auto manifest = ReadManifest(found.folder);
    if (!manifest) return found.folder + ": no manifest.json: being written, or interrupted";
    if (manifest->run.step != found.step) {
      return found.folder + ": its manifest is of step " + std::to_string(manifest->run.step);
    }
    // Sizes first: reading them is cheaper than opening files.
    if (const auto fault = FirstFault(found.folder, *manifest)) return fault;
    for (const CheckpointFile& file : FilesHere(found.folder, *manifest)) {
      OpenShardFile(found.folder, found.step, file);
    }
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return std::nullopt;
}

/// An inaccessible manifest counts as present.
bool HasManifest(const Found& found) {
  std::error_code unknown;
  return fs::exists(ManifestPath(found.folder), unknown) || unknown;
}

void RemoveManifest(const std::string& folder) {
  std::error_code error;
  const bool removed = fs::remove(ManifestPath(folder), error);
  if (error) throw FileError(ManifestPath(folder), "remove", error);
  if (removed) SyncDirectory(folder);
}

void Remove(const std::string& folder) {
  RemoveManifest(folder);
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) throw FileError(folder, "remove", error);
}

}  // namespace

std::string CheckpointFolder(const std::string& run_folder, std::int64_t step) {
  return (fs::path(run_folder) / "checkpoints" / NameOf(step)).string();
}

std::string HeldFolder(const std::string& run_folder, std::int64_t step, std::int64_t generation) {
  return run_folder + "/memory/" + NameOf(step) + ".g" + std::to_string(generation);
}

std::string NewCheckpointFolder(const std::string& run_folder, std::int64_t step) {
  const std::string folder = CheckpointFolder(run_folder, step);
  RemoveManifest(folder);
  return folder;
}

std::optional<std::string> NewestCheckpoint(
    const std::string& run_folder, const std::function<void(const std::string& line)>& skipped) {
  const std::vector<Found> all = AllFolders(run_folder);
  for (const Found& found : all) {
    const auto fault = FaultOf(found);
    if (!fault) return found.folder;
    skipped(*fault + ": the checkpoint of step " + std::to_string(found.step) + " is skipped");
  }
  if (std::ranges::any_of(all, HasManifest)) {
    throw std::runtime_error((fs::path(run_folder) / "checkpoints").string() +
                             ": every checkpoint is damaged; remove this folder to train from the "
                             "beginning");
  }
  return std::nullopt;
}

std::string DamagedFile(const std::string& checkpoint) {
  const CheckpointManifest manifest = RequireManifest(checkpoint);
  for (const CheckpointFile& file : FilesHere(checkpoint, manifest)) {
    std::string path = checkpoint + "/" + file.name;
    if (Sha256OfFile(path) != file.sha256) return path;
  }
  return {};
}

std::vector<FoundCheckpoint> AllCheckpoints(const std::string& run_folder) {
  std::vector<FoundCheckpoint> all;
  for (const Found& found : AllFolders(run_folder)) {
    all.push_back({found.step, found.folder, FaultOf(found).value_or("")});
  }
  return all;
}

std::string RunOf(const std::string& checkpoint) {
  return fs::path(checkpoint).parent_path().parent_path().string();
}

void PublishCheckpoint(const std::string& folder, const std::string& manifest,
                       const std::string& disk) {
  MakeFolders(folder);
  const CheckpointManifest parsed = ParseManifest(manifest);
  const bool many =
      std::ranges::any_of(parsed.files, [](const auto& file) { return !file.disk.empty(); });
  const std::string checkpoints = fs::path(folder).parent_path().string();
  if (many && DiskOf(checkpoints) != disk) {
    ReplaceFile((fs::path(checkpoints) / kDiskFile).string(), disk + "\n");
  }
  WriteManifest(folder, parsed);
}

void KeepCheckpoints(const std::string& run_folder, const std::vector<std::int64_t>& steps) {
  for (const Found& found : AllFolders(run_folder)) {
    if (std::ranges::find(steps, found.step) == steps.end()) Remove(found.folder);
  }
}

void RemoveOldCheckpoints(const std::string& run_folder, std::int64_t keep,
                          std::int64_t keep_every) {
  if (keep < 1) {
    throw std::invalid_argument("checkpoints to keep: expected at least 1, got " +
                                std::to_string(keep));
  }
  std::int64_t num_complete = 0;
  for (const Found& found : AllFolders(run_folder)) {
    const bool lasting = keep_every > 0 && found.step % keep_every == 0;
    if (lasting && num_complete >= keep) continue;
    if (!FaultOf(found)) {
      if (++num_complete > keep) Remove(found.folder);
    } else if (num_complete > 0) {
      Remove(found.folder);
    }
  }
}

}  // namespace troupe
