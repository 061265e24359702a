// The folder that a run writes, self-contained:
//   resolved.toml         every value of the configuration, defaults included
//   resolved-STEP.toml    where it was resumed with another: the one from each such step on
//   folders.txt           digests of the folders that modules started from (run_folders.hpp)
//   metrics.jsonl         one object per training step and evaluation
//   trace/                messages and device work, a file per process (trace/recorder.hpp)
//   weights.safetensors   the final parameters, whole tensors by name
//   checkpoints/          shards of parameters and optimizer state (checkpoint/run_checkpoints.hpp)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

inline constexpr const char* kResolvedFile = "resolved.toml";
inline constexpr const char* kMetricsFile = "metrics.jsonl";

/// Path of the configuration in the run directory `run`.
std::string ResolvedFile(const std::string& run);
/// Path of the one that it had from a step on, if it has had several.
std::string ResolvedFile(const std::string& run, std::int64_t step);

class RunDirectory {
 public:
  /// Makes DIR/NAME-YYYYMMDD-HHMMSS (UTC), with the suffix -2, -3, ... if that exists, and writes
  /// resolved.toml. With `into` resumes in that directory instead, and makes it if it is missing.
  /// Locks the directory against other runs while this object lives. Throws FileError, and leaves
  /// no new directory then.
  RunDirectory(const RunConfig& run, const std::string& resolved_toml,
               const std::string& into = "");

  /// The newest complete checkpoint, empty if there is none.
  const std::string& checkpoint() const { return checkpoint_; }

  const std::string& path() const { return path_; }
  /// Whether this object made it.
  bool is_new() const { return is_new_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  /// The trace folder of the next start of the run: the first of trace, trace-2, ... that does not
  /// exist.
  std::string NewTraceFolder() const;
  /// Names of the existing trace folders, one per start, in order.
  std::vector<std::string> TraceFolders() const;

 private:
  /// Resumes in `into`.
  void Enter(const std::string& into);
  /// Makes the directory of a new run.
  void Make(const RunConfig& run);
  /// Writes resolved.toml, and keeps the others that the run had.
  void WriteResolved(const std::string& text) const;
  /// Takes the lock. Throws std::runtime_error if another run has it.
  void Lock();

  std::string path_;
  bool is_new_ = false;
  std::shared_ptr<void> lock_;
  std::string checkpoint_;
};

/// Removes a run directory in which no step was finished, and the link `latest` to it. Such a
/// directory holds only the configuration, empty metrics and a folder without traces. Returns a
/// line that reports it; empty if the directory stays.
std::string RemoveUnused(const std::string& run_directory);

/// Returns the run directory that `text` names: a path; the target of a link (runs/latest); a name
/// in runs/ ("latest"); or NAME for the newest runs/NAME-TIME. Returns `text` unchanged if there is
/// none: opening it reports the error.
std::string FindRun(const std::string& text);

/// Makes DIR/latest a link to `run`, which is in DIR, atomically. Does nothing if DIR/latest is not
/// a link, or the file system has no links.
void LinkLatest(const std::string& run);

}  // namespace troupe
