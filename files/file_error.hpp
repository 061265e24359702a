// What the system refuses, as one line: the path, what could not be done, the system's reason, and
// what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe {

/// "runs/a: cannot create: Permission denied; change its permissions or choose another place".
class FileError : public std::runtime_error {
 public:
  /// `error` is an errno. `next_step` is what to do; empty: what the reason suggests, if anything.
  FileError(const std::string& path, const std::string& action, int error,
            const std::string& next_step = "");
  FileError(const std::string& path, const std::string& action, const std::error_code& error,
            const std::string& next_step = "")
      : FileError(path, action, error.value(), next_step) {}
};

/// Makes the folder `path`, and those above it that are missing. Throws FileError.
void MakeFolders(const std::string& path);

/// Whether anything is at `path`. Throws FileError where the system does not say.
bool IsThere(const std::string& path);

}  // namespace troupe
