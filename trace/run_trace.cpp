#include "trace/run_trace.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "trace/recorder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> TraceFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == kTraceExtension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string TraceFolderName(int start) {
  return start == 1 ? "trace" : "trace-" + std::to_string(start);
}

std::string NewestTraceFolder(const std::string& run) {
  if (!fs::is_directory(run)) throw std::runtime_error(run + ": no such run directory");
  fs::path newest;
  for (int start = 1;; ++start) {
    const fs::path folder = fs::path(run) / TraceFolderName(start);
    if (!fs::is_directory(folder)) break;
    newest = folder;
  }
  return newest.empty() ? run : newest.string();
}

std::vector<TraceFile> ReadTraceFiles(const std::string& run_directory) {
  const fs::path folder = NewestTraceFolder(run_directory);
  std::vector<TraceFile> files;
  for (const fs::path& path : TraceFiles(folder)) files.push_back(ReadTraceFile(path.string()));
  if (files.empty()) {
    throw std::runtime_error(run_directory +
                             ": holds no trace (was it run with trace.messages = false?)");
  }
  return files;
}

RunTrace ReadRunTrace(const std::string& run_directory) {
  return MergeTraces(ReadTraceFiles(run_directory), run_directory);
}

}  // namespace troupe
