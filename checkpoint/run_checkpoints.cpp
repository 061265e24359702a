#include "checkpoint/run_checkpoints.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/output_file.hpp"

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

/// The reverse of NameOf; nothing for every other text.
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

/// All folders that are named like checkpoints, newest first.
std::vector<Found> AllFolders(const std::string& run_folder) {
  std::vector<Found> all;
  const fs::path checkpoints = fs::path(run_folder) / "checkpoints";
  if (!fs::exists(checkpoints)) return all;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
    const auto step = StepOf(entry.path().filename().string());
    // A link leads to somebody else's files.
    if (step && fs::is_directory(entry.symlink_status())) {
      all.push_back({.step = *step, .folder = entry.path().string()});
    }
  }
  std::ranges::sort(all, std::greater<>(), &Found::step);
  return all;
}

bool IsComplete(const Found& found) {
  try {
    const auto manifest = ReadManifest(found.folder);
    return manifest && manifest->step == found.step && !FirstFault(found.folder, *manifest);
  } catch (const std::runtime_error&) {
    return false;
  }
}

void Remove(const std::string& folder) {
  if (fs::remove(fs::path(folder) / "manifest.json")) SyncDirectory(folder);
  fs::remove_all(folder);
}

}  // namespace

std::string CheckpointFolder(const std::string& run_folder, std::int64_t step) {
  return (fs::path(run_folder) / "checkpoints" / NameOf(step)).string();
}

std::optional<std::string> NewestCheckpoint(const std::string& run_folder) {
  for (const Found& found : AllFolders(run_folder)) {
    if (IsComplete(found)) return found.folder;
  }
  return std::nullopt;
}

void RemoveOldCheckpoints(const std::string& run_folder, std::int64_t keep) {
  if (keep < 1) {
    throw std::invalid_argument("checkpoints to keep: expected at least 1, got " +
                                std::to_string(keep));
  }
  std::int64_t num_complete = 0;
  for (const Found& found : AllFolders(run_folder)) {
    if (IsComplete(found)) {
      if (++num_complete > keep) Remove(found.folder);
    } else if (num_complete > 0) {
      Remove(found.folder);
    }
  }
}

}  // namespace troupe
