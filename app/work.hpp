// The two kinds of work on a configuration, in one process or several: training it, and verifying
// its gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/handed_config.hpp"
#include "app/run_job.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"

namespace troupe {

struct RunSpec;

struct WorkArguments {
  ConfigArguments config;
  bool verify = false;              ///< else train
  std::int64_t steps = 3;           ///< verify: steps to compare
  std::vector<std::string> faults;  ///< for tests, see PlantedFault
  std::string dtype;                ///< verify: precision of both sides; empty: the configuration's
};

/// One process's part of the work.
class Work {
 public:
  virtual ~Work() = default;
  /// Process 0: makes the run directory, or resumes in `into` if that is not empty. Returns its
  /// path; empty if the work writes no files.
  virtual std::string OpenRunDirectory(const std::string&) { return ""; }
  /// Process 0, with a run directory: whether it goes on from no checkpoint.
  virtual bool begins_anew() const { return true; }
  /// Process 0, with a run directory: whether only the report is left to write.
  virtual bool is_done() const { return false; }
  /// Process 0: ends the work if that is so.
  virtual void FinishDone() {}
  /// Process 0: where its job begins, once that is known.
  struct Beginning {
    std::int64_t step = 0;  ///< after which
    std::string from = {};  ///< a checkpoint, or "memory"; empty: nothing was stored
  };
  virtual Beginning beginning() const { return {}; }
  /// Process 0: goes on from a state that the processes of the job hold in memory, if that is newer
  /// than the one it would go on from. Returns whether it does.
  virtual bool GoOnFrom(const HeldState&) { return false; }
  /// From here on the modules have the layouts of `config`, which differs from that of the whole job in
  /// ranks, sizes and microbatches alone.
  virtual void TakeLayouts(const Config& config);
  /// Null for synthetic modules.
  const RowSource* rows() const { return rows_.get(); }
  /// The job with all its processes.
  const JobPlan& whole() const { return *whole_; }
  /// Process 0: removes the run directory if it made it and no step was finished. Returns a line
  /// that reports it; empty if nothing was removed.
  virtual std::string RemoveUnused() { return ""; }
  /// The task, one "key = value" per line; the same in all processes. Lists the skipped rows:
  /// processes that skip different rows would train on different samples.
  std::string Task() const;
  /// Process 0: prints warnings about the data, such as the first few rows that data.on_error
  /// skips, and this machine. Not called on a restart.
  virtual void Warn();
  /// Process 0: prints the layout and the run directory; later, where the next generation begins.
  virtual void Announce() = 0;
  /// `first`: for process 0, which also reports progress.
  virtual JobSetup Setup(bool first);
  /// Process 0: prints the result. Returns the exit code.
  virtual int Finish(const JobEnd& end) = 0;

 protected:
  /// Opens the data, and looks into the folders of weights. Throws DataError, ModelFolderError, and
  /// std::invalid_argument for a malformed fault.
  explicit Work(const RunSpec& run);
  /// The verb, and its options that all processes must share.
  virtual std::string Command() const = 0;

  const std::shared_ptr<InputSource> source_;
  const std::shared_ptr<RowSource> rows_;  ///< `source_`; null for synthetic modules
  std::shared_ptr<const JobPlan> plan_;    ///< with the steps that run.epochs means

 private:
  const std::shared_ptr<const JobPlan> whole_;
  std::vector<PlantedFault> faults_;
};

/// Opens the data. Throws DataError.
std::unique_ptr<Work> OpenWork(const RunSpec& run);
std::unique_ptr<Work> OpenTraining(const RunSpec& run);
/// Throws DataError for synthetic modules, which compute nothing to verify.
std::unique_ptr<Work> OpenVerification(const RunSpec& run);

/// Prints a line for each key that has no effect, to standard error.
void WarnOfRemarks(const LoadedConfig& loaded);

/// Returns the exit code of a failed job, and prints its cause unless it was reported.
int ReportFailure(const JobEnd& end);

}  // namespace troupe
