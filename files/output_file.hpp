// Every file of a run directory is made here. They are whole or not there: every write, flush and
// close is checked, and a file takes its name only once its bytes are on the disk. No link is
// followed there: others may be able to write where a run is.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace troupe {

/// Creates `path` for reading and writing in the place of whatever file or link has that name.
/// Returns its descriptor. Throws FileError.
int CreateFile(const std::string& path);

enum class FileOpening {
  kNew,     ///< in the place of whatever file or link has the name
  kAppend,  ///< at the end of the file, which may be there; not through a link
  kInPlace  ///< into whatever has the name: a file, which is emptied, a pipe, or what a link names
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
  /// Blocks until what was written is on the disk.
  void Sync();
  /// The destructor closes too, but swallows the error.
  void Close();

 private:
  std::string path_;
  int file_ = -1;
};

/// Writes `path` as a whole: `write` fills PATH.tmp, which is flushed to the disk and then renamed
/// to `path`. When anything fails the old `path` is untouched, PATH.tmp is removed, and the error
/// is thrown: what `write` threw, else FileError.
void ReplaceFile(const std::string& path, const std::function<void(OutputFile&)>& write);

/// Writes what a user has named, which may be a pipe or a device. Throws FileError.
void WriteInPlace(const std::string& path, const std::string& text);

/// Blocks until the names in `directory` are on the disk. Throws FileError.
void SyncDirectory(const std::string& directory);

}  // namespace troupe
