// The folder a run leaves behind, self-contained:
//   resolved.toml         every value of the configuration, defaults included
//   metrics.jsonl         one object per training step and evaluation
//   trace/                messages and what every device ran, a file per process
//                         (trace/recorder.hpp)
//   weights.safetensors   the final parameters, whole tensors by name
//   checkpoints/          shards of parameters and optimizer state (checkpoint/run_checkpoints.hpp)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

class RunDirectory {
 public:
  /// Makes DIR/NAME-YYYYMMDD-HHMMSS (UTC), with -2, -3, ... behind it if that is taken, and writes
  /// resolved.toml. Throws FileError, and leaves no new directory then.
  /// `into`: resume in this one instead, made if it is not there, and locked against other runs
  /// while this object lives.
  RunDirectory(const RunConfig& run, const std::string& resolved_toml,
               const std::string& into = "");

  /// The newest complete checkpoint, empty when there is none; and how many steps it is from.
  const std::string& checkpoint() const { return checkpoint_; }
  std::int64_t steps_done() const { return steps_done_; }

  const std::string& path() const { return path_; }
  /// Whether this object made it.
  bool is_new() const { return is_new_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  /// Where the traces of the next start of the run go: the first of trace, trace-2, ... that is not
  /// there.
  std::string NewTraceFolder() const;
  /// Names of the folders that are there, one per start, in order.
  std::vector<std::string> TraceFolders() const;

 private:
  /// Goes on in `into`.
  void Enter(const std::string& into);
  /// Makes a directory for a run that begins.
  void Make(const RunConfig& run);
  /// Takes the lock, or throws std::runtime_error if somebody has it.
  void Lock();

  std::string path_;
  bool is_new_ = false;
  std::shared_ptr<void> lock_;
  std::string checkpoint_;
  std::int64_t steps_done_ = 0;
};

/// Removes a run directory in which no step was finished, and the link `latest` to it: one that
/// holds no more than the configuration, metrics without a line and a folder without a trace.
/// Returns whether it did.
bool RemoveUnused(const std::string& run_directory);

}  // namespace troupe
