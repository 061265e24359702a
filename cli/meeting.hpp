// What processes that one of them has started on this machine are given to prove that they belong
// together.
#pragma once

#include <filesystem>
#include <string>

namespace troupe {

/// A key in a file that only this user can read, and a free port of the loopback interface. The
/// file goes with this object. Where the process was killed it stays behind, in
/// PARENT/troupe-PID-XXXXXX; the next Meeting of this user removes what such processes have left.
class Meeting {
 public:
  /// Throws std::runtime_error when no folder can be made in `parent`.
  explicit Meeting(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  const std::string& key_file() const { return key_file_; }
  /// "127.0.0.1:41234": free a moment ago. A new one each time.
  static std::string FreeAddress();

 private:
  std::string folder_;
  std::string key_file_;
  int lock_ = -1;  ///< the folder, open and locked while this object lives
};

}  // namespace troupe
