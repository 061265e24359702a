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
    if (entry.path().extension() == kTraceExtension && entry.is_regular_file()) {
      files.push_back(entry.path());
    }
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
  std::string first_error;
  for (const fs::path& path : TraceFiles(folder)) {
    try {
      files.push_back(ReadTraceFile(path.string()));
    } catch (const std::runtime_error& e) {
      // The others still tell what they know; its process is told as missing.
      if (first_error.empty()) first_error = e.what();
    }
  }
  if (files.empty() && !first_error.empty()) throw std::runtime_error(first_error);
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
