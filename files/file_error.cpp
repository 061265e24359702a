#include "files/file_error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace troupe {

namespace {

const char* StepAfter(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "change its permissions or choose another place";
    case EROFS:
      return "choose another place";
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose another place";
    case EFBIG:
      return "is there a limit (ulimit -f)?";
    case EMFILE:
      return "is there a limit (ulimit -n)?";
    case ENAMETOOLONG:
      return "choose a shorter name";
    case ENOTDIR:
      return "a part of the path is a file";
    case EISDIR:
      return "choose the name of a file";
    default:
      return "";
  }
}

std::string TextOf(const std::string& path, const std::string& action, int error,
                   const std::string& next_step) {
  const std::string step = next_step.empty() ? StepAfter(error) : next_step;
  return path + ": cannot " + action + ": " + std::strerror(error) +
         (step.empty() ? "" : "; " + step);
}

}  // namespace

FileError::FileError(const std::string& path, const std::string& action, int error,
                     const std::string& next_step)
    : std::runtime_error(TextOf(path, action, error, next_step)) {}

bool IsThere(const std::string& path) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (error) throw FileError(path, "read", error);
  return exists;
}

}  // namespace troupe
