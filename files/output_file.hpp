// Creates every file of a run directory. A file is complete or absent: every write, flush and close
// is checked, and a file gets its name only once its bytes are on the disk. Links are not followed,
// since other users may be able to write to the directory.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace troupe {

/// Creates `path` for reading and writing, replacing any file or link of that name. Returns its
/// descriptor. Throws FileError.
int CreateFile(const std::string& path);

enum class FileOpening {
  kNew,     ///< replaces any file or link of that name
  kAppend,  ///< appends to the file, which may exist; does not follow a link
  kInPlace  ///< truncates a file; follows a link; opens a pipe or a device
};

/// A file being written. Every failure throws FileError (files/file_error.hpp), e.g.
/// "runs/a/model.safetensors.tmp: cannot write: No space left on device; free some space ...".
class OutputFile {
 public:
  explicit OutputFile(std::string path, FileOpening opening = FileOpening::kNew);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  /// Blocks until everything written so far is on the disk.
  void Sync();
  /// The destructor closes too, but swallows the error.
  void Close();

 private:
  std::string path_;
  int file_ = -1;
};

/// Writes `path` atomically: `write` fills PATH.tmp, which is flushed to the disk and then renamed
/// to `path`. On any failure `path` keeps its old content and PATH.tmp is removed. Throws
/// FileError, or the exception that `write` threw.
void ReplaceFile(const std::string& path, const std::function<void(OutputFile&)>& write);
/// The same with `text`.
void ReplaceFile(const std::string& path, const std::string& text);

/// Checks that `path` can be written before hours of measuring, and keeps its content. Does not open a
/// pipe, whose reader would see its end. Throws FileError.
void RefuseWhatCannotBeWritten(const std::string& path);
/// Writes to a path given by the user, which may be a pipe or a device. Throws FileError.
void WriteInPlace(const std::string& path, const std::string& text);

/// Blocks until the directory's entries are on the disk. Throws FileError.
void SyncDirectory(const std::string& directory);
/// Likewise, of the directory that has the entry `path`, if this user may read it.
void SyncParent(const std::string& path);

/// Makes the folder `path`, and those above it that are missing, and blocks until they are on the
/// disk. Throws FileError.
void MakeFolders(const std::string& path);

}  // namespace troupe
