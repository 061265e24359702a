// Which of the files in a trace folder are of its run: one for each process, all of one job.
#pragma once

#include <string>
#include <vector>

#include "trace/recorder.hpp"

namespace troupe {

struct NamedTraceFile {
  std::string name;  ///< "n0.trace", without its folder
  TraceFile file;
};

struct RunFiles {
  std::vector<TraceFile> files;      ///< by process
  std::vector<std::string> skipped;  ///< a line for each that is left out: which, and beside which
};

/// Files carry the number of their process and what all processes of their job agree on (names,
/// stages, links, types), but no name of the run. So these are left out:
///   - of two files of one process, that which is not called as its process is ("n0.trace"), or the
///     later by name: a copy, or the file of another run
///   - a file whose job has other processes, stages, links or types than the one with the lowest
///     process has
///   - a file whose records all lie before or behind all of that one's, on its clock: processes of
///     one job work at one time
RunFiles ChooseRunFiles(std::vector<NamedTraceFile> all);

/// Those of a run's last start; files that cannot be read are among the skipped. Throws
/// std::runtime_error naming path and reason where none is left.
RunFiles ReadRunFiles(const std::string& run_directory);

}  // namespace troupe
