#include "app/run_directory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include "actors/wait_lists.hpp"
#include "app/cause.hpp"
#include "app/run_events.hpp"
#include "app/run_folders.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"
#include "trace/run_trace.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNextStep = "choose another with --set run.dir=DIR";

/// Makes `path` with access for its owner only: others could put links where files will be written.
/// Returns false if it exists.
bool MakePrivate(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) {
    SyncParent(path);
    return true;
  }
  const int reason = errno;
  std::error_code unknown;
  if (reason == EEXIST && fs::is_directory(path, unknown)) return false;
  throw FileError(path, "create", reason, kNextStep);
}

/// Returns whether `folder` holds no trace: at most the cause file, whose text was printed.
bool HoldsNoTrace(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename() != kCauseFile) return false;
  }
  return !error;
}

/// Returns whether `entry` is as a run makes it before its first step.
bool IsUnused(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code unknown;
  if (name == kMetricsFile) return entry.file_size(unknown) == 0;
  if (name == TraceFolderName(1)) return HoldsNoTrace(entry.path());
  return name == kResolvedFile || name == kFoldersFile || name == kEventsFile;
}

constexpr const char* kRuns = "runs";
constexpr const char* kLatest = "latest";

/// When a run began: its time and its number among those of one second.
using RunTime = std::tuple<std::string, int>;

/// Splits "shapes-20261126-031932-2" into name and time; nullopt for other texts.
std::optional<std::pair<std::string, RunTime>> ParseRunName(const std::string& text) {
  std::vector<std::string> parts = Split(text, '-');
  const auto digits = [&](std::size_t from_end, std::size_t fewest, std::size_t most) {
    if (parts.size() <= from_end) return false;
    const std::string& part = parts[parts.size() - from_end];
    return part.size() >= fewest && part.size() <= most &&
           part.find_first_not_of("0123456789") == std::string::npos;
  };
  int number = 1;
  if (digits(1, 1, 9) && digits(2, 6, 6) && digits(3, 8, 8)) {
    number = std::stoi(parts.back());
    parts.pop_back();
  }
  if (!digits(1, 6, 6) || !digits(2, 8, 8)) return std::nullopt;
  const std::string time = parts[parts.size() - 2] + "-" + parts.back();
  parts.resize(parts.size() - 2);
  const std::string name = Listed(parts, "-");
  if (name.empty()) return std::nullopt;
  return std::pair(name, RunTime(time, number));
}

/// Returns the newest NAME-TIME in `folder`, of any name if `name` is empty; "" if there is none.
std::string NewestOf(const fs::path& folder, const std::string& name) {
  RunTime newest;
  std::string path;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    const auto run = ParseRunName(entry.path().filename().string());
    if (!run || (!name.empty() && run->first != name)) continue;
    if (path.empty() || run->second > newest) {
      newest = run->second;
      path = entry.path().string();
    }
  }
  return path;
}

/// Replaces the link atomically: readers always find one.
void PutLink(const fs::path& target, const fs::path& link) {
  std::error_code error;
  const fs::path fresh =
      link.parent_path() / ("." + std::string(kLatest) + "-" + std::to_string(getpid()));
  fs::create_directory_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);
}

/// Points DIR/latest, if it is a link to the removed `run`, to the newest run that is left, or
/// removes it.
void UnlinkLatest(const std::string& run) {
  fs::path path = fs::path(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const fs::path link = path.parent_path() / kLatest;
  std::error_code error;
  if (fs::read_symlink(link, error) != path.filename() || error) return;
  const std::string newest = NewestOf(link.parent_path(), "");
  if (newest.empty()) {
    fs::remove(link, error);
  } else {
    PutLink(fs::path(newest).filename(), link);
  }
}

}  // namespace

RunDirectory::RunDirectory(const RunConfig& run, const std::string& resolved_toml,
                           const std::string& into) {
  if (into.empty()) {
    Make(run);
  } else {
    Enter(into);
  }
  try {
    WriteResolved(resolved_toml);
  } catch (...) {
    if (is_new_) RemoveUnused(path_);
    throw;
  }
}

void RunDirectory::Enter(const std::string& into) {
  path_ = into;
  const std::string parent = fs::path(into).parent_path().string();
  if (!parent.empty()) MakeFolders(parent);
  is_new_ = MakePrivate(into);
  Lock();
  checkpoint_ = NewestCheckpoint(into, PrintWarning).value_or("");
}

void RunDirectory::WriteResolved(const std::string& text) const {
  const std::string path = ResolvedFile(path_);
  if (!checkpoint_.empty() && IsThere(path)) {
    const std::string before = ReadWholeFile(path);
    const std::string first = ResolvedFile(path_, 0);
    if (before != text) {
      if (!IsThere(first)) ReplaceFile(first, before);
      ReplaceFile(ResolvedFile(path_, RequireManifest(checkpoint_).run.step), text);
    }
  }
  ReplaceFile(path, text);
}

void RunDirectory::Make(const RunConfig& run) {
  std::error_code error;
  fs::create_directories(run.dir, error);
  if (error) throw FileError(run.dir, "create", error, kNextStep);
  const std::string base = run.dir + "/" + run.name + "-" + TimeOfNow("%Y%m%d-%H%M%S");
  path_ = base;
  for (int attempt = 2; !MakePrivate(path_); ++attempt)
    path_ = base + "-" + std::to_string(attempt);
  is_new_ = true;
  Lock();
}

void RunDirectory::Lock() {
  const int folder = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // the first write reports the error
  lock_ = std::shared_ptr<void>(nullptr, [folder](void*) { close(folder); });
  // A file system without locks is not a reason to refuse the run.
  if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw std::runtime_error(path_ + ": another run is using this directory");
  }
}

std::string RunDirectory::NewTraceFolder() const {
  return File(TraceFolderName(static_cast<int>(std::ssize(TraceFolders())) + 1));
}

std::vector<std::string> RunDirectory::TraceFolders() const {
  std::vector<std::string> folders;
  std::string name = TraceFolderName(1);
  while (IsThere(File(name))) {
    folders.push_back(name);
    name = TraceFolderName(static_cast<int>(std::ssize(folders)) + 1);
  }
  return folders;
}

std::string ResolvedFile(const std::string& run) { return run + "/" + kResolvedFile; }

std::string ResolvedFile(const std::string& run, std::int64_t step) {
  return run + "/resolved-" + std::to_string(step) + ".toml";
}

std::string RemoveUnused(const std::string& run_directory) {
  std::error_code error;
  fs::directory_iterator entry(run_directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!IsUnused(*entry)) return "";
  }
  // The trace folder is removed first: if it holds traces, its removal fails and all files stay.
  const std::string trace = TraceFolderName(1);
  for (const std::string& name :
       {trace + "/" + kCauseFile, trace, std::string(kMetricsFile), std::string(kFoldersFile),
        std::string(kEventsFile), std::string(kResolvedFile)}) {
    if (!error) fs::remove(fs::path(run_directory) / name, error);
  }
  if (error || !fs::remove(run_directory, error)) return "";
  UnlinkLatest(run_directory);
  return "removed " + run_directory + ": no step was finished\n";
}

std::string FindRun(const std::string& text) {
  std::error_code error;
  if (text.empty()) return text;
  if (fs::is_symlink(fs::symlink_status(text, error))) {
    return (fs::path(text).parent_path() / fs::read_symlink(text, error)).string();
  }
  if (fs::exists(text, error) || text.find('/') != std::string::npos) return text;
  const std::string inside = std::string(kRuns) + "/" + text;
  if (fs::exists(inside, error)) return FindRun(inside);
  const std::string newest = NewestOf(kRuns, text);
  return newest.empty() ? text : newest;
}

void LinkLatest(const std::string& run) {
  std::error_code error;
  const fs::path real = fs::canonical(run, error);
  if (error) return;
  const fs::path link = real.parent_path() / kLatest;
  const fs::file_status there = fs::symlink_status(link, error);
  if (fs::exists(there) && !fs::is_symlink(there)) return;
  PutLink(real.filename(), link);
}

}  // namespace troupe
