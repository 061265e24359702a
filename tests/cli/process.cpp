#include "tests/cli/process.hpp"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kBound{60};
/// A signal that comes sooner after the first is the same request to end.
constexpr std::chrono::milliseconds kNextRequest{600};

class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int value) : value_(value) {
    if (value < 0) throw std::runtime_error("no pipe or terminal for the program");
  }
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OwnedDescriptor() { Close(); }
  int get() const { return value_; }
  void Close() {
    if (value_ >= 0) close(std::exchange(value_, -1));
  }

 private:
  int value_;
};

struct Ends {
  OwnedDescriptor read;
  OwnedDescriptor write;
};

Ends Pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the program");
  return {OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
}

Ends Terminal() {
  OwnedDescriptor master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (grantpt(master.get()) != 0 || unlockpt(master.get()) != 0) {
    throw std::runtime_error("no terminal for the program");
  }
  OwnedDescriptor slave(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  return {std::move(master), std::move(slave)};
}

/// Only what is safe between fork and exec.
[[noreturn]] void Become(char* const* arguments, int out, int err, const ProcessOptions& options) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0) {
    _exit(127);
  }
  if (options.max_file_bytes > 0) {
    const rlimit limit{options.max_file_bytes, options.max_file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);  // a write then fails, as on a full disk
  }
  execv(arguments[0], arguments);
  _exit(127);
}

pid_t Start(const std::vector<std::string>& arguments, int out, int err,
            const ProcessOptions& options) {
  std::vector<std::string> words = {TROUPE_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) Become(pointers.data(), out, err, options);
  if (child < 0) throw std::runtime_error("cannot fork");
  return child;
}

/// Appends what is there; false at the end of the stream. A terminal ends with EIO.
bool ReadSome(int from, std::string& into) {
  std::array<char, 4096> bytes;
  const ssize_t count = read(from, bytes.data(), bytes.size());
  if (count <= 0) return false;
  into.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

/// The youngest of the processes that `parent` has started.
pid_t YoungestChildOf(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream children("/proc/" + id + "/task/" + id + "/children");
  pid_t youngest = 0;
  for (pid_t child = 0; children >> child;) youngest = child;
  if (youngest == 0) throw std::runtime_error("the program has started no other");
  return youngest;
}

/// Whether `text` contains `event` for the first time.
bool Happens(std::string& event, const std::string& text) {
  if (event.empty() || text.find(event) == std::string::npos) return false;
  event.clear();
  return true;
}

/// Reads both streams to their ends, or to the bound.
void Listen(OwnedDescriptor& out, OwnedDescriptor& err, pid_t child, ProcessOptions options,
            Outcome& outcome) {
  const auto deadline = Clock::now() + kBound;
  std::array<pollfd, 2> streams = {pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || poll(streams.data(), 2, static_cast<int>(left.count())) <= 0) {
      outcome.timed_out = true;
      kill(child, SIGKILL);
      return;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (streams[i].revents == 0) continue;
      if (!ReadSome(streams[i].fd, i == 0 ? outcome.out : outcome.err)) streams[i].fd = -1;
    }
    if (Happens(options.interrupt_at, outcome.out)) kill(child, SIGINT);
    if (Happens(options.interrupt_again_at, outcome.err)) {
      std::this_thread::sleep_for(kNextRequest);
      kill(child, SIGINT);
    }
    if (Happens(options.call_at, outcome.out)) options.call(child);
    if (Happens(options.kill_child_at, outcome.out)) kill(YoungestChildOf(child), SIGKILL);
    if (Happens(options.stop_reading_at, outcome.out)) {
      out.Close();
      streams[0].fd = -1;
    }
  }
}

}  // namespace

Outcome RunTroupe(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  Ends out = options.terminal ? Terminal() : Pipe();
  Ends err = Pipe();
  const auto begin = Clock::now();
  const pid_t child = Start(arguments, out.write.get(), err.write.get(), options);
  out.write.Close();
  err.write.Close();
  Outcome outcome;
  Listen(out.read, err.read, child, options, outcome);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return outcome;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.rfind("troupe: warning: ", 0) != 0) lines.push_back(line);
  }
  return lines;
}

}  // namespace troupe
