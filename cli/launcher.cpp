#include "cli/launcher.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "cli/commands.hpp"

extern char** environ;

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

/// When one has failed, the others have this long to follow, and this long once they are asked to.
constexpr std::chrono::seconds kFollow{6};
/// The others see at once that a process was killed, unless they have not met yet.
constexpr std::chrono::seconds kFollowKilled{3};
constexpr std::chrono::milliseconds kStopped{500};
constexpr std::chrono::seconds kPlea{5};

struct Child {
  std::string name;
  pid_t pid = -1;
  int err = -1;  ///< read end of its standard error; -1 once closed
  std::string partial;
  bool running = true;
  bool stopped = false;  ///< by a signal, once; it may have gone on since
  int status = 0;        ///< as waitpid gives it
};

/// What failed processes said, in the order of arrival.
struct Cause {
  std::string line;
  int count = 0;
};

bool KilledBy(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

bool Unread(int status) { return KilledBy(status, SIGPIPE); }

/// What a child that has ended would have exited with. Nobody reading, and files that may not grow,
/// are what the user did, and a new start would meet them again: no loss.
int CodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Unread(status) || KilledBy(status, SIGXFSZ) ? kExitFailed : kExitLost;
}

std::string KilledLine(const Child& child) {
  if (Unread(child.status)) return "nobody reads the output of " + child.name + " any more";
  const int signal = WTERMSIG(child.status);
  return (CodeOf(child.status) == kExitLost ? "lost " : "") + child.name + ": killed by signal " +
         std::to_string(signal) + " (" + strsignal(signal) + ")";
}

class Launched {
 public:
  explicit Launched(const std::vector<ChildProcess>& processes) {
    try {
      for (const ChildProcess& process : processes) Start(process);
    } catch (...) {
      for (const Child& child : children_) kill(child.pid, SIGKILL);
      throw;
    }
  }

  bool killed() const { return killed_; }

  void Signal(int signal) {
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, signal);
    }
  }

  /// Process 0 speaks for all.
  void SignalFirst(int signal) {
    if (!children_.empty() && children_.front().running) kill(children_.front().pid, signal);
  }

  /// Asks everybody to end in order. Whoever has not set up its handlers yet just ends.
  void Ask(int signal) {
    asked_ = signal;
    Signal(signal);
  }

  /// Ends everybody at once; what they say or leave unsaid is no cause.
  void Kill() {
    killed_ = true;
    Signal(SIGKILL);
  }

  int Run() {
    while (AnyRunning() || AnyOpen()) {
      ReadSome();
      Reap();
      HurryUp();
    }
    if (unready_) {
      std::cerr << "interrupted before anything had begun\n" << std::flush;
      return 128 + asked_;
    }
    if (!killed_) TellCause();
    return exit_code_;
  }

 private:
  void Start(const ChildProcess& process);
  void ReadSome();
  void Line(const Child& child, const std::string& line);
  void Reap();
  void HurryUp();
  void TellCause() const;
  bool AnyRunning() const {
    for (const Child& child : children_) {
      if (child.running) return true;
    }
    return false;
  }
  bool AnyOpen() const {
    for (const Child& child : children_) {
      if (child.err >= 0) return true;
    }
    return false;
  }

  std::vector<Child> children_;
  std::vector<Cause> causes_;
  int exit_code_ = kExitDone;
  Clock::time_point failed_at_{};
  int pleas_ = 0;
  bool killed_by_others_ = false;  ///< a child
  std::atomic<int> asked_ = 0;     ///< the signal that came for all
  bool unready_ = false;           ///< it ended a child before that could handle it
  std::atomic<bool> killed_ = false;
};

void Launched::Start(const ChildProcess& process) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  // A group of its own: Ctrl-C in the terminal comes here, and from here to all, once.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = {"troupe"};
  words.insert(words.end(), process.arguments.begin(), process.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Child child;
  child.name = process.name;
  const int error =
      posix_spawn(&child.pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw std::runtime_error("cannot start " + process.name + ": " + std::strerror(error));
  }
  child.err = ends[0];
  children_.push_back(std::move(child));
}

void Launched::ReadSome() {
  std::vector<pollfd> polls;
  for (const Child& child : children_) polls.push_back({child.err, POLLIN, 0});
  poll(polls.data(), polls.size(), 100);
  for (std::size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].fd < 0 || polls[i].revents == 0) continue;
    Child& child = children_[i];
    std::array<char, 4096> bytes{};
    const ssize_t got = read(child.err, bytes.data(), bytes.size());
    if (got > 0) child.partial.append(bytes.data(), static_cast<std::size_t>(got));
    for (auto end = child.partial.find('\n'); end != std::string::npos;
         end = child.partial.find('\n')) {
      Line(child, child.partial.substr(0, end));
      child.partial.erase(0, end + 1);
    }
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (!child.partial.empty()) Line(child, child.partial);
    close(child.err);
    child.err = -1;
  }
}

void Launched::Line(const Child& child, const std::string& line) {
  const bool cause = line.rfind("troupe: ", 0) == 0 && line.rfind("troupe: warning: ", 0) != 0;
  if (!cause) {
    std::cerr << (&child == &children_.front() ? line + "\n" : child.name + ": " + line + "\n")
              << std::flush;
    return;
  }
  for (Cause& known : causes_) {
    if (known.line == line) {
      ++known.count;
      return;
    }
  }
  causes_.push_back({line, 1});
}

void Launched::Reap() {
  for (Child& child : children_) {
    if (!child.running || waitpid(child.pid, &child.status, WNOHANG | WUNTRACED) != child.pid) {
      continue;
    }
    if (WIFSTOPPED(child.status)) {
      child.stopped = true;  // until the job fails for it, it may go on
      continue;
    }
    child.running = false;
    if (asked_ != 0 && KilledBy(child.status, asked_)) {
      unready_ = true;
      if (failed_at_ == Clock::time_point{}) failed_at_ = Clock::now();
      continue;
    }
    const int code = CodeOf(child.status);
    // Who was made to end is no cause.
    if (code == kExitDone || pleas_ > 0 || (child.stopped && !causes_.empty())) continue;
    if (WIFSIGNALED(child.status)) {
      killed_by_others_ = true;
      causes_.insert(causes_.begin(), {"troupe: " + KilledLine(child), 1});
    }
    if (exit_code_ == kExitDone || WIFSIGNALED(child.status)) exit_code_ = code;
    if (failed_at_ == Clock::time_point{}) failed_at_ = Clock::now();
  }
}

/// When one has failed the others end by themselves; those that do not are asked, then made to.
void Launched::HurryUp() {
  if (failed_at_ == Clock::time_point{} || !AnyRunning()) return;
  const auto since = Clock::now() - failed_at_;
  for (const Child& child : children_) {
    // A stopped process cannot follow.
    if (child.running && child.stopped && since > kStopped) kill(child.pid, SIGKILL);
  }
  const auto follow = killed_by_others_ || unready_ ? kFollowKilled : kFollow;
  if (pleas_ == 0 && since > follow) {
    ++pleas_;
    Signal(SIGTERM);
  } else if (pleas_ == 1 && since > follow + kPlea) {
    ++pleas_;
    Signal(SIGKILL);
  }
}

void Launched::TellCause() const {
  if (causes_.empty()) return;
  int echoes = -1;
  for (const Cause& cause : causes_) echoes += cause.count;
  if (echoes > 0) {
    std::cerr << "(" << echoes << (echoes == 1 ? " more process" : " more processes")
              << " ended for this reason)\n";
  }
  std::cerr << causes_.front().line << '\n' << std::flush;
}

}  // namespace

int RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt) {
  Launched launched(children);
  interrupt.OnSignal([&launched, count = 0](int signal) mutable {
    if (signal == SIGUSR1) return launched.SignalFirst(signal);
    if (count++ == 0) {
      std::cerr << "finishing the step under way; once more ends at once\n" << std::flush;
    }
    if (count == 1) return launched.Ask(signal);
    launched.Kill();
  });
  const int exit_code = launched.Run();
  interrupt.OnSignal(nullptr);
  if (!launched.killed()) return exit_code;
  std::cerr << "ended at once: nothing was saved\n" << std::flush;
  return 128 + interrupt.signal();
}

void EndWithParent() {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == 1) raise(SIGTERM);  // it was gone before
}

}  // namespace troupe
