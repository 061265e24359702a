// Checks that the processes of a job share one run directory: process 0 writes a token there, the
// others look for it and write a mark next to it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Makes a folder and those above it that are missing. The destructor removes those that it made,
/// as far as they are empty.
class MadeFolders {
 public:
  /// Throws std::runtime_error with the path and the system's error.
  explicit MadeFolders(const std::string& directory);
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  ~MadeFolders();

 private:
  std::vector<std::filesystem::path> made_;  ///< deepest first
};

/// A folder with a token in the run directory. The destructor removes it, and the run directory if
/// it was made for it.
class SharedToken {
 public:
  /// `name`: of the folder. Throws std::runtime_error with the path and the system's error.
  SharedToken(const std::string& directory, const std::string& name);
  SharedToken(const SharedToken&) = delete;
  SharedToken& operator=(const SharedToken&) = delete;
  ~SharedToken();

 private:
  std::string folder_;
  MadeFolders made_;
};

/// Looks for the token and writes the file `mark` next to it. Returns the error, or "". Waits two
/// seconds for a network file system to show the token.
std::string LookForToken(const std::string& directory, const std::string& name,
                         const std::string& mark);

}  // namespace troupe
