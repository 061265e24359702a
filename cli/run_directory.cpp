#include "cli/run_directory.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <span>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "files/output_file.hpp"
#include "trace/run_trace.hpp"

namespace troupe {
namespace {

std::string Timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &utc);
  return text.data();
}

/// Whether it was made: whoever else may enter could put links where files are about to be written.
bool MakePrivate(const std::string& path, std::error_code& error) {
  error.clear();
  if (mkdir(path.c_str(), 0700) == 0) return true;
  const int reason = errno;
  if (reason != EEXIST || !std::filesystem::is_directory(path)) {
    error = std::error_code(reason, std::generic_category());
  }
  return false;
}

}  // namespace

RunDirectory::RunDirectory(const RunConfig& run, const std::string& resolved_toml,
                           const std::string& into)
    : path_(into) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!into.empty()) {
    fs::create_directories(fs::absolute(into).parent_path(), error);
    if (!error) MakePrivate(into, error);
    if (error) throw std::runtime_error(into + ": cannot create: " + error.message());
    Lock();
    const auto warn = [](const std::string& line) {
      std::cerr << "troupe: warning: " << line << '\n';
    };
    if (const auto newest = NewestCheckpoint(into, warn)) {
      checkpoint_ = *newest;
      steps_done_ = ReadManifest(checkpoint_)->step;
    }
  }
  if (path_.empty()) fs::create_directories(run.dir, error);
  if (error) throw std::runtime_error(run.dir + ": cannot create: " + error.message());
  const std::string base = run.dir + "/" + run.name + "-" + Timestamp();
  for (int attempt = 1; path_.empty(); ++attempt) {
    const std::string candidate = attempt == 1 ? base : base + "-" + std::to_string(attempt);
    if (MakePrivate(candidate, error)) path_ = candidate;
    if (error) throw std::runtime_error(candidate + ": cannot create: " + error.message());
  }
  if (!lock_) Lock();
  ReplaceFile(File("resolved.toml"),
              [&](OutputFile& file) { file.Write(std::as_bytes(std::span(resolved_toml))); });
}

void RunDirectory::Lock() {
  const int folder = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // whoever writes there says why it cannot
  lock_ = std::shared_ptr<void>(nullptr, [folder](void*) { close(folder); });
  // A file system without locks protects nobody, and is no reason not to train.
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
  while (std::filesystem::exists(File(name))) {
    folders.push_back(name);
    name = TraceFolderName(static_cast<int>(std::ssize(folders)) + 1);
  }
  return folders;
}

}  // namespace troupe
