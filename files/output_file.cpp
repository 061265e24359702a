#include "files/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>
#include <vector>

#include "files/file_error.hpp"

namespace troupe {

int CreateFile(const std::string& path) {
  unlink(path.c_str());  // left by an earlier run, or another user's link
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) throw FileError(path, "create", errno);
  return file;
}

OutputFile::OutputFile(std::string path, FileOpening opening) : path_(std::move(path)) {
  if (opening == FileOpening::kNew) {
    file_ = CreateFile(path_);
    return;
  }
  const int how = opening == FileOpening::kAppend ? O_APPEND | O_NOFOLLOW : O_TRUNC;
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  if (file_ < 0) throw FileError(path_, "create", errno);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
}

void OutputFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(path_, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void OutputFile::Sync() {
  while (fsync(file_) != 0) {
    if (errno != EINTR) throw FileError(path_, "flush", errno);
  }
}

void OutputFile::Close() {
  // close() releases the descriptor even on failure: closing again could hit another thread's file.
  const int file = std::exchange(file_, -1);
  if (file >= 0 && close(file) != 0) throw FileError(path_, "close", errno);
}

void ReplaceFile(const std::string& path, const std::function<void(OutputFile&)>& write) {
  const std::string temporary = path + ".tmp";
  OutputFile file(temporary);
  try {
    write(file);
    file.Sync();
    file.Close();
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw FileError(path, "replace", errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  SyncParent(path);  // only then is the rename on the disk
}

void ReplaceFile(const std::string& path, const std::string& text) {
  ReplaceFile(path, [&](OutputFile& file) { file.Write(std::as_bytes(std::span(text))); });
}

void RefuseWhatCannotBeWritten(const std::string& path) {
  std::error_code ignored;
  const auto there = std::filesystem::status(path, ignored);
  const bool is_file = std::filesystem::is_regular_file(there);
  if (std::filesystem::exists(there) && !is_file && !std::filesystem::is_directory(there)) return;
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw FileError(path, "write", errno);
  close(file);
  if (!is_file) std::filesystem::remove(path, ignored);
}

void WriteInPlace(const std::string& path, const std::string& text) {
  OutputFile file(path, FileOpening::kInPlace);
  file.Write(std::as_bytes(std::span(text)));
  file.Close();
}

void SyncDirectory(const std::string& directory) {
  const int file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) throw FileError(directory, "open", errno);
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  // EINVAL: this file system cannot flush directories.
  if (error != 0 && error != EINVAL) throw FileError(directory, "flush", error);
}

void SyncParent(const std::string& path) {
  std::filesystem::path entry = std::filesystem::path(path).lexically_normal();
  if (!entry.has_filename()) entry = entry.parent_path();  // "a/"
  const std::filesystem::path above = entry.parent_path();
  const std::string parent = above.empty() ? "." : above.string();
  // Users may write into a folder that they cannot read: it cannot be flushed.
  if (access(parent.c_str(), R_OK) != 0 && errno == EACCES) return;
  SyncDirectory(parent);
}

void MakeFolders(const std::string& path) {
  std::vector<std::filesystem::path> missing;
  std::error_code error;
  std::filesystem::path above = std::filesystem::path(path).lexically_normal();
  while (!above.empty() && !std::filesystem::is_directory(above, error) &&
         above.has_relative_path()) {
    missing.push_back(above);
    above = above.parent_path();
  }
  std::filesystem::create_directories(path, error);
  if (error) throw FileError(path, "create", error);
  for (const auto& folder : missing) SyncParent(folder.string());
}

}  // namespace troupe
