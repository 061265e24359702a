// One program that a test has started: each line it wrote with the moment at which it came, and how
// it ended. It is killed when the test is over, and when the test itself is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace troupe::testing {

using Clock = std::chrono::steady_clock;

struct Line {
  Clock::time_point at;
  bool error = false;  ///< written to standard error
  std::string text;
};

/// How a program ended.
struct Ending {
  bool ended = false;     ///< false: it still runs, and the rest means nothing
  int exit_code = 0;      ///< 128 + signal when a signal ended it, as a shell says
  std::string last_line;  ///< of standard error
  Clock::time_point at;
};

class Program {
 public:
  /// Starts `words`, the first of them found in PATH, with standard input empty. It is sent SIGKILL
  /// when the calling thread ends. Throws std::runtime_error when the system refuses.
  explicit Program(std::vector<std::string> words);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  /// Nothing when it has ended.
  void Signal(int signal);

  /// The first line of either stream that contains `text` and came at `since` or later; none when
  /// there is no such line within `timeout`, or the program ends without one.
  std::optional<Line> WaitForLine(const std::string& text, std::chrono::milliseconds timeout,
                                  Clock::time_point since = {}) const;
  /// Until it has ended, `timeout` at most.
  Ending WaitForEnd(std::chrono::milliseconds timeout) const;

  std::vector<Line> lines() const;
  /// All of it, for messages of a failed test.
  std::string Transcript() const;

 private:
  void Listen();
  bool ReadSome(int from, bool error, std::string& partial);
  void Add(bool error, const std::string& text);
  bool Reap();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Line> lines_;
  bool reaped_ = false;  ///< the process is gone; `ending_` is complete once all is read, too
  Ending ending_;
  std::thread thread_;
};

/// The direct children of `pid`; none when it is gone.
std::vector<pid_t> ChildrenOf(pid_t pid);
/// Whether the process exists and is not just waiting to be reaped.
bool IsAlive(pid_t pid);

/// Runs a shell script (`sh -e`) and returns what it printed. Throws std::runtime_error with that
/// when the script fails.
std::string Shell(const std::string& script);

}  // namespace troupe::testing
