// Whether the processes of a job see one run directory: process 0 leaves a token there, the others
// look for it and leave a mark beside it.
#pragma once

#include <string>

namespace troupe {

/// A folder in the run directory with a token in it; goes with this object, and the run directory
/// too if it was made for it.
class SharedToken {
 public:
  /// `name`: of the folder. Throws std::runtime_error naming the path and the system's words.
  SharedToken(const std::string& directory, const std::string& name);
  SharedToken(const SharedToken&) = delete;
  SharedToken& operator=(const SharedToken&) = delete;
  ~SharedToken();

 private:
  std::string folder_;
  std::string made_;  ///< the outermost folder that was not there
};

/// Looks for the token and writes the file `mark` beside it. Returns what is wrong, empty when
/// nothing is. A network file system gets two seconds to show it.
std::string LookForToken(const std::string& directory, const std::string& name,
                         const std::string& mark);

}  // namespace troupe
