// Selects the files in a trace folder that belong to its run: one per process, all of one job.
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
  std::vector<std::string> skipped;  ///< a line for each file left out, with the reason
};

/// A file holds the number of its process and the facts that all processes of its job share
/// (names, stages, links, types), but not the name of its run. So these files are left out:
///   - of two files of one process, the one that is not named after its process ("n0.trace"), or
///     the later by name: a copy, or the file of another run
///   - a file whose job has other processes, stages, links or types than the file of the lowest
///     process
///   - a file whose records all precede or all follow those of that file: processes of one job run
///     at the same time
RunFiles ChooseRunFiles(std::vector<NamedTraceFile> all);

/// The files of a run's last start. Unreadable files are among the skipped. Throws
/// std::runtime_error naming path and reason if no file is left.
RunFiles ReadRunFiles(const std::string& run_directory);

}  // namespace troupe
