// The two kinds of work on a configuration that one or several processes do: training it, and
// proving its gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/run_job.hpp"
#include "configs/loader.hpp"

namespace troupe {

struct WorkArguments {
  ConfigArguments config;
  bool verify = false;              ///< else train
  std::int64_t steps = 3;           ///< verify: steps to compare
  std::vector<std::string> faults;  ///< of tests, see PlantedFault
  std::string dtype;                ///< verify: precision of both sides; empty: the configuration's
};

/// One process's part of the work.
class Work {
 public:
  virtual ~Work() = default;
  virtual const LoadedConfig& loaded() const = 0;
  virtual const JobPlan& plan() const = 0;
  /// Process 0: makes the run directory (or resumes in `into`, if that is not empty). Empty where
  /// the work leaves nothing behind.
  virtual std::string OpenRunDirectory(const std::string& into) = 0;
  /// Process 0: removes the run directory that it has made, if no step was finished in it. Returns
  /// a line that says so; empty where everything stays.
  virtual std::string RemoveUnused() = 0;
  /// What all processes must have been asked for, one "key = value" a line.
  virtual std::string Task() const = 0;
  /// Process 0: says what is about to run.
  virtual void Announce() = 0;
  /// `first`: for process 0, with everything that shows progress.
  virtual JobSetup Setup(bool first) = 0;
  /// Process 0: prints what came out of it. Returns the exit code.
  virtual int Finish(const JobEnd& end) = 0;
};

/// Loads the configuration and opens the data. Throws ConfigErrors, DataError, LayoutError.
std::unique_ptr<Work> OpenWork(WorkArguments arguments);

/// The configuration, once the files of [data] are there. Throws ConfigErrors.
LoadedConfig LoadWithData(const std::string& path, const std::vector<std::string>& overrides);

/// A line for each key that has no effect, to standard error.
void WarnOfRemarks(const LoadedConfig& loaded);

/// A line for each of the first few rows that data.on_error skips, to standard error.
void WarnOfSkippedRows(const InputSource& source);
/// For Work::Task: processes that skip different rows would train on different samples. Empty where
/// no row is skipped.
std::string SkippedLine(const InputSource& source);

/// Throws CLI-like std::invalid_argument for a malformed one.
std::vector<PlantedFault> FaultsOf(const WorkArguments& arguments);

/// What a failed job exits with; prints its cause unless somebody else does.
int ReportFailure(const JobEnd& end);

}  // namespace troupe
