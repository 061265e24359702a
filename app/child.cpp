#include "app/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include "app/cause.hpp"
#include "app/interrupt.hpp"

extern char** environ;

namespace troupe {
namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

[[noreturn]] void ThrowPipeError() {
  throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
}

/// A copy above the numbers under which a child finds its own.
Descriptor HighCopy(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kInheritedConfig + 1);
  if (high < 0) ThrowPipeError();
  return Descriptor(high);
}

Pipe MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) ThrowPipeError();
  const Descriptor read(ends[0]);
  const Descriptor write(ends[1]);
  return {HighCopy(read.get()), HighCopy(write.get())};
}

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

StartedChild StartChild(const ChildProcess& process) {
  Pipe err = MakePipe();
  Pipe causes = MakePipe();
  const Descriptor config = process.config >= 0 ? HighCopy(process.config) : Descriptor();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  // The key first: its number here may be that of a later target.
  if (process.key >= 0) posix_spawn_file_actions_adddup2(&actions, process.key, kInheritedKey);
  posix_spawn_file_actions_adddup2(&actions, causes.write.get(), kCausePipe);
  if (config) posix_spawn_file_actions_adddup2(&actions, config.get(), kInheritedConfig);
  // A separate process group: Ctrl-C in the terminal reaches the launcher, which forwards it once.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Signals that ask for something stay blocked until the child ignores them (interrupt.cpp). In a job
  // that has begun, so do those that end it, until the child handles them.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : kAskSignals) sigaddset(&blocked, signal);
  if (process.generation > 0) {
    for (const int signal : kEndSignals) sigaddset(&blocked, signal);
  }
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = {"troupe"};
  words.insert(words.end(), process.arguments.begin(), process.arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  StartedChild child{-1, std::move(err.read), std::move(causes.read)};
  const int error =
      posix_spawn(&child.pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("cannot start " + process.name + ": " + std::strerror(error));
  return child;
}

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
