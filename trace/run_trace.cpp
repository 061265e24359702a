#include "trace/run_trace.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "files/file_error.hpp"
#include "trace/recorder.hpp"
#include "trace/run_files.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> TraceFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    if (entry->path().extension() == kTraceExtension && entry->is_regular_file(unknown)) {
      files.push_back(entry->path());
    }
  }
  if (error) throw FileError(folder.string(), "read", error);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string TraceFolderName(int start) {
  return start == 1 ? "trace" : "trace-" + std::to_string(start);
}

std::string NewestTraceFolder(const std::string& run) {
  std::error_code error;
  if (!fs::is_directory(run, error)) {
    throw std::runtime_error(run + ": no such run directory" +
                             (error ? ": " + error.message() : ""));
  }
  fs::path newest;
  for (int start = 1;; ++start) {
    const fs::path folder = fs::path(run) / TraceFolderName(start);
    if (!fs::is_directory(folder, error)) break;
    newest = folder;
  }
  return newest.empty() ? run : newest.string();
}

RunFiles ReadRunFiles(const std::string& run_directory) {
  const fs::path folder = NewestTraceFolder(run_directory);
  std::vector<NamedTraceFile> files;
  std::vector<std::string> unreadable;
  for (const fs::path& path : TraceFiles(folder)) {
    try {
      files.push_back({path.filename().string(), ReadTraceFile(path.string())});
    } catch (const std::runtime_error& e) {
      // The other files remain useful; this process is reported as missing.
      unreadable.push_back(e.what());
    }
  }
  if (files.empty() && !unreadable.empty()) throw std::runtime_error(unreadable.front());
  if (files.empty()) {
    throw std::runtime_error(run_directory +
                             ": holds no trace (was it run with trace.messages = false?)");
  }
  RunFiles chosen = ChooseRunFiles(std::move(files));
  chosen.skipped.insert(chosen.skipped.end(), unreadable.begin(), unreadable.end());
  return chosen;
}

RunTrace ReadRunTrace(const std::string& run_directory) {
  RunFiles chosen = ReadRunFiles(run_directory);
  RunTrace trace = MergeTraces(chosen.files, run_directory);
  trace.skipped = std::move(chosen.skipped);
  return trace;
}

}  // namespace troupe
