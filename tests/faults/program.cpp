#include "tests/faults/program.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace troupe::testing {
namespace {

/// How often the end of a program is looked for, and how long its grandchildren may hold its
/// streams open after it.
constexpr int kLookMs = 5;
constexpr std::chrono::milliseconds kAfterwards{300};

/// The times under test are the program's, not those of a machine that does other things besides:
/// programs and the threads that take their lines go first, where that is allowed.
constexpr int kPriority = -10;

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

/// Only what is safe between fork and exec.
[[noreturn]] void Become(char* const* words, int in, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpriority(PRIO_PROCESS, 0, kPriority);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(words[0], words);
  _exit(127);
}

}  // namespace

Program::Program(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) {
    Fail("no pipes for a program");
  }
  pid_ = fork();
  if (pid_ == 0) Become(pointers.data(), in, out[1], err[1]);
  const int error = errno;
  for (const int done : {in, out[1], err[1]}) close(done);
  out_ = out[0];
  err_ = err[0];
  if (pid_ < 0) {
    close(out_);
    close(err_);
    errno = error;
    Fail("cannot fork");
  }
  thread_ = std::thread([this] { Listen(); });
}

Program::~Program() {
  Signal(SIGKILL);
  thread_.join();
  close(out_);
  close(err_);
}

void Program::Signal(int signal) {
  const std::lock_guard lock(mutex_);
  if (!reaped_) kill(pid_, signal);
}

bool Program::Reap() {
  const std::lock_guard lock(mutex_);
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  reaped_ = true;
  ending_.at = Clock::now();
  ending_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

void Program::Add(bool error, const std::string& text) {
  const std::lock_guard lock(mutex_);
  lines_.push_back({Clock::now(), error, text});
  if (error && !text.empty()) ending_.last_line = text;
  changed_.notify_all();
}

/// False at the end of the stream.
bool Program::ReadSome(int from, bool error, std::string& partial) {
  std::array<char, 4096> bytes{};
  const ssize_t count = read(from, bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) {
    if (!partial.empty()) Add(error, std::exchange(partial, ""));
    return false;
  }
  partial.append(bytes.data(), static_cast<std::size_t>(count));
  for (auto end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
    Add(error, partial.substr(0, end));
    partial.erase(0, end + 1);
  }
  return true;
}

void Program::Listen() {
  setpriority(PRIO_PROCESS, 0, kPriority);
  std::array<pollfd, 2> streams = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  std::array<std::string, 2> partial;
  bool gone = false;
  Clock::time_point last = Clock::time_point::max();
  while (!gone || ((streams[0].fd >= 0 || streams[1].fd >= 0) && Clock::now() < last)) {
    poll(streams.data(), streams.size(), kLookMs);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      if (!ReadSome(streams[i].fd, i == 1, partial[i])) streams[i].fd = -1;
    }
    if (gone || !Reap()) continue;
    gone = true;
    last = Clock::now() + kAfterwards;
  }
  const std::lock_guard lock(mutex_);
  ending_.ended = true;
  changed_.notify_all();
}

std::optional<Line> Program::WaitForLine(const std::string& text, std::chrono::milliseconds timeout,
                                         Clock::time_point since) const {
  const auto deadline = Clock::now() + timeout;
  std::unique_lock lock(mutex_);
  for (std::size_t next = 0;;) {
    for (; next < lines_.size(); ++next) {
      if (lines_[next].at >= since && lines_[next].text.find(text) != std::string::npos) {
        return lines_[next];
      }
    }
    if (ending_.ended || Clock::now() >= deadline) return std::nullopt;
    changed_.wait_until(lock, deadline);
  }
}

Ending Program::WaitForEnd(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return ending_.ended; });
  return ending_;
}

std::vector<Line> Program::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::string Program::Transcript() const {
  std::string text;
  for (const Line& line : lines()) text += (line.error ? "! " : "| ") + line.text + "\n";
  const Ending ending = WaitForEnd(std::chrono::milliseconds(0));
  return text + (ending.ended ? "exit " + std::to_string(ending.exit_code) : "runs on") + "\n";
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

bool IsAlive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;
  const auto state = text.rfind(") ");
  return state != std::string::npos && text[state + 2] != 'Z' && text[state + 2] != 'X';
}

std::string Shell(const std::string& script) {
  FILE* const pipe = popen(("exec 2>&1; set -e\n" + script).c_str(), "re");
  if (pipe == nullptr) Fail("cannot start a shell");
  std::string output;
  std::array<char, 4096> bytes{};
  for (std::size_t count = 0; (count = fread(bytes.data(), 1, bytes.size(), pipe)) > 0;) {
    output.append(bytes.data(), count);
  }
  if (pclose(pipe) != 0) throw std::runtime_error(script + "\nfailed: " + output);
  return output;
}

}  // namespace troupe::testing
