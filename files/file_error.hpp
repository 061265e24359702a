// An error of the file system as one line: the path, the action that failed, the system's reason,
// and the next step.
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe {

/// "runs/a: cannot create: Permission denied; change its permissions or choose another place".
class FileError : public std::runtime_error {
 public:
  /// `error` is an errno. An empty `next_step` is replaced by the usual one for that errno, if any.
  FileError(const std::string& path, const std::string& action, int error,
            const std::string& next_step = "");
  FileError(const std::string& path, const std::string& action, const std::error_code& error,
            const std::string& next_step = "")
      : FileError(path, action, error.value(), next_step) {}
};

/// Whether `path` exists. Throws FileError if the system cannot tell.
bool IsThere(const std::string& path);

}  // namespace troupe
