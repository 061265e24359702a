// Runs the real program as a user does, with a bound on how long it may take.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// The configuration that the README begins with.
inline constexpr const char* kShapes = "configs/shapes.toml";

struct ProcessOptions {
  bool terminal = false;           ///< standard output is a pseudo terminal instead of a pipe
  std::size_t max_file_bytes = 0;  ///< files cannot grow beyond, as on a full disk; 0 = no bound
  // What happens once the output, or the complaints, contain this; empty = never.
  std::string interrupt_at;        ///< output: Ctrl-C
  std::string interrupt_again_at;  ///< complaints: Ctrl-C once more, 0.6 s later
  std::string stop_reading_at;     ///< output: its reader is gone
  std::string kill_child_at;       ///< output: its youngest child is killed
  std::string call_at;             ///< output: `call` is called
  std::function<void(int process)> call;
  std::string working_directory;  ///< empty = the test's own
};

struct Outcome {
  int exit_code = 0;       ///< 128 + signal when a signal ended it, as a shell says
  bool timed_out = false;  ///< it was killed because it did not end
  std::string out;
  std::string err;
  double seconds = 0.0;
};

/// Runs `troupe` with `arguments` in the working directory and waits for its end, 60 s at most.
Outcome RunTroupe(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

/// The lines of `text` that are not empty, without the program's warnings about this machine.
std::vector<std::string> LinesOf(const std::string& text);

}  // namespace troupe
