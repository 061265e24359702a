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
  if (path.empty()) return std::nullopt;
  const auto plain_of = [](const fs::path& folder) {
    return folder.has_filename() ? folder : folder.parent_path();
  };
  fs::path plain = plain_of(fs::path(path).lexically_normal());
  if (plain.parent_path().parent_path().empty()) {
    plain = plain_of(fs::absolute(path).lexically_normal());
  }
  const bool is_checkpoint = plain.parent_path().filename() == "checkpoints" &&
                             plain.filename().string().starts_with("step-");
  if (!is_checkpoint) return std::nullopt;
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
  const std::string parameters = NewestParameters(path, PrintWarning);
  if (parameters.ends_with(kWeightsFile)) {
    return {path, parameters, SavedParameters::OfFile(parameters)};
  }
  return OpenCheckpoint(path, parameters);
}

}  // namespace troupe
