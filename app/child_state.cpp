#include "app/child_state.hpp"

#include <fstream>
#include <sstream>

namespace troupe {
namespace {

/// The fields of /proc/PID/stat after the name, which may contain blanks; the state is the first.
constexpr int kExitCodeField = 49;

pid_t TracerOf(const std::string& process) {
  std::ifstream file(process + "/status");
  for (std::string word; file >> word;) {
    pid_t tracer = 0;
    if (word == "TracerPid:" && file >> tracer) return tracer;
  }
  return 0;
}

}  // namespace

std::optional<ChildState> StateOf(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::ifstream file(process + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ChildState state;
  fields >> state.letter;
  std::string skipped;
  for (int field = 1; field < kExitCodeField; ++field) fields >> skipped;
  fields >> state.status;
  state.tracer = TracerOf(process);
  return state;
}

std::string Describe(const ChildState& state) {
  const std::string tracer =
      state.tracer == 0 ? "another process" : "process " + std::to_string(state.tracer);
  std::string text = std::string("state ") + state.letter;
  switch (state.letter) {
    case 'D':
      return text + " (it waits for a device or a file system)";
    case 'T':
      return text + " (stopped)";
    case 't':
      return text + " (stopped by " + tracer + ", which traces it)";
    case 'Z':
      return text + " (it has ended, and " + tracer + " traces it)";
    default:
      return text;
  }
}

}  // namespace troupe
