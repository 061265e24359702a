#include "app/saved_run.hpp"

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "app/cause.hpp"
#include "app/run_directory.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"

namespace troupe {

namespace fs = std::filesystem;

/// RUN for RUN/checkpoints/step-00000120, else nothing.
static std::optional<std::string> RunOfCheckpoint(const std::string& path) {
  const fs::path folder = fs::path(path).lexically_normal();
  const fs::path plain = folder.has_filename() ? folder : folder.parent_path();
  if (plain.parent_path().filename() != "checkpoints") return std::nullopt;
  return plain.parent_path().parent_path().string();
}

/// Opens a checkpoint whose bytes are those that were written.
static SavedRun OpenCheckpoint(const std::string& run, const std::string& checkpoint) {
  SavedRun opened{run, checkpoint, SavedParameters::OfCheckpoint(checkpoint)};
  const std::string damaged = DamagedFile(checkpoint);
  if (damaged.empty()) return opened;
  throw std::runtime_error(damaged + ": damaged since it was written: its SHA-256 is not that of " +
                           "the manifest");
}

std::string RunDirectoryOf(const std::string& path) {
  std::string run = RunOfCheckpoint(path).value_or(path);
  std::error_code unknown;
  return fs::exists(ResolvedFile(run), unknown) ? run : std::string();
}

SavedRun OpenSavedRun(const std::string& path) {
  if (const auto run = RunOfCheckpoint(path)) return OpenCheckpoint(*run, path);
  const std::string weights = path + "/" + kWeightsFile;
  std::error_code unknown;
  const auto newest = NewestCheckpoint(path, PrintWarning);
  if (fs::exists(weights, unknown)) {
    SavedParameters final = SavedParameters::OfFile(weights);
    if (!newest) return {path, weights, std::move(final)};
    if (final.steps() >= RequireManifest(*newest).run.step)
      return {path, weights, std::move(final)};
  }
  if (newest) return OpenCheckpoint(path, *newest);
  throw std::runtime_error(
      path + ": expected a checkpoint or " + kWeightsFile +
      ", found neither; a run saves its parameters when it ends, and checkpoints as "
      "[checkpoint] says");
}

}  // namespace troupe
