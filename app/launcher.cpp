#include "app/launcher.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "app/cause.hpp"
#include "app/child.hpp"
#include "app/exit_code.hpp"
#include "app/resume.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for the other children to end after one has failed; kTerminating after SIGTERM.
constexpr std::chrono::seconds kFollow{6};
/// Like `kFollow`, after a child was killed. Children that have met notice that immediately.
constexpr std::chrono::seconds kFollowKilled{3};
constexpr std::chrono::milliseconds kStopped{500};
constexpr std::chrono::seconds kTerminating{5};
/// Time for the system to end and reap a killed process. One that waits for a broken disk, or that
/// a tracer holds, would take forever.
constexpr std::chrono::seconds kReaping{3};
/// Time for the last lines of children that have ended; another process may hold their stream open.
constexpr std::chrono::seconds kLastLines{2};

/// Text from a child, split at each `end`.
struct Stream {
  int descriptor = -1;  ///< read end; -1 once closed
  char end = '\n';
  std::string partial;
};

struct Child {
  std::string name;
  pid_t pid = -1;
  Stream err;     ///< its standard error
  Stream causes;  ///< its pipe for causes
  bool running = true;
  bool killed = false;                            ///< by a signal that the launcher did not send
  bool stopped = false;                           ///< by a signal at least once; may run again
  std::chrono::milliseconds longest_stop{0};      ///< see ChildProcess
  std::optional<Clock::time_point> stopped_at{};  ///< while it is stopped
  int status = 0;                                 ///< as waitpid returns it
  Clock::time_point ended_at{};                   ///< set once it has ended and cannot be reaped
};

/// A cause, and the number of children that reported it.
struct Cause {
  Failure failure;
  int count = 0;
};

void CloseStream(Stream& stream) {
  if (stream.descriptor >= 0) close(stream.descriptor);
  stream.descriptor = -1;
}

bool KilledBy(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

bool Unread(int status) { return KilledBy(status, SIGPIPE); }

/// The exit code for a child's status. A closed output is not a loss: the user closed it, and a
/// restart would fail in the same way.
int CodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Unread(status) ? kExitFailed : kExitLost;
}

std::string KilledLine(const Child& child) {
  if (Unread(child.status)) return "the output of " + child.name + " was closed by its reader";
  const int signal = WTERMSIG(child.status);
  return (CodeOf(child.status) == kExitLost ? "lost " : "") + child.name + ": killed by signal " +
         std::to_string(signal) + " (" + strsignal(signal) + ")";
}

std::string WarningOf(const Child& child, const std::string& what, const ChildState& state) {
  return "troupe: warning: " + child.name + " (process " + std::to_string(child.pid) + ") " + what +
         ": " + Describe(state) + "\n";
}

std::string StoppedLine(const Child& child) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(child.longest_stop).count();
  return "lost " + child.name + ": stopped by a signal for " + std::to_string(seconds) +
         " s (process " + std::to_string(child.pid) + ")";
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
  FailureKind kind() const {
    return causes_.empty() ? FailureKind::kError : causes_.front().failure.kind;
  }

  void Signal(int signal) {
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, signal);
    }
  }

  /// Sends `signal` to process 0 only.
  void SignalFirst(int signal) {
    if (!children_.empty() && children_.front().running) kill(children_.front().pid, signal);
  }

  /// Asks all children to end in order. A child without handlers yet ends immediately.
  void Ask(int signal) {
    asked_ = signal;
    Signal(signal);
  }

  /// Kills all children. Their output after this is not a cause.
  void Kill() {
    killed_ = true;
    Signal(SIGKILL);
  }

  int Run() {
    while (AnyRunning() || AnyOpen()) {
      ReadSome();
      Reap();
      NameStopped();
      EndOthers();
      GiveUp();
    }
    if (unready_) {
      std::cerr << "interrupted before anything had begun\n" << std::flush;
      return ExitCodeOfSignal(asked_);
    }
    if (!reported_ || left_behind_) ReportCause();
    return exit_code_;
  }

 private:
  void Start(const ChildProcess& process);
  void ReadSome();
  void Read(Stream& stream, const std::function<void(const std::string& text)>& take);
  void Line(const Child& child, const std::string& line);
  void Note(const LauncherRecord& record);
  /// How to resume, if process 0 was killed before it could print it; else empty.
  std::string Advice() const;
  void Reap();
  static bool HasEnded(Child& child);
  void NameStopped();
  void EndOthers();
  void GiveUp();
  void ReportCause();
  bool AnyRunning() const {
    for (const Child& child : children_) {
      if (child.running) return true;
    }
    return false;
  }
  bool AnyOpen() const {
    for (const Child& child : children_) {
      if (child.err.descriptor >= 0 || child.causes.descriptor >= 0) return true;
    }
    return false;
  }

  std::vector<Child> children_;
  std::vector<Cause> causes_;
  int exit_code_ = kExitDone;
  Clock::time_point failed_at_{};
  int escalations_ = 0;            ///< 1: SIGTERM was sent to the others, 2: SIGKILL
  bool reported_ = false;          ///< the cause was printed
  bool left_behind_ = false;       ///< a child could not be ended
  Clock::time_point killed_at_{};  ///< SIGKILL was sent to all
  Clock::time_point ended_at_{};   ///< all children have ended
  bool killed_by_others_ = false;  ///< a child
  std::atomic<int> asked_ = 0;     ///< the signal that was forwarded to all
  std::string run_directory_;      ///< as process 0 reported it; empty until then
  bool unready_ = false;           ///< `asked_` ended a child that had no handler yet
  std::atomic<bool> killed_ = false;
};

void Launched::Start(const ChildProcess& process) {
  Child child;
  child.name = process.name;
  child.longest_stop = process.longest_stop;
  const StartedChild started = StartChild(process);
  child.pid = started.pid;
  child.err.descriptor = started.err;
  child.causes = {started.causes, '\0', ""};
  children_.push_back(std::move(child));
}

void Launched::ReadSome() {
  std::vector<pollfd> polls;
  for (const Child& child : children_) {
    polls.push_back({child.err.descriptor, POLLIN, 0});
    polls.push_back({child.causes.descriptor, POLLIN, 0});
  }
  poll(polls.data(), polls.size(), 100);
  const auto ready = [](const pollfd& entry) { return entry.fd >= 0 && entry.revents != 0; };
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    if (ready(polls[2 * i])) {
      Read(child.err, [&](const std::string& line) { Line(child, line); });
    }
    if (ready(polls[2 * i + 1])) {
      Read(child.causes, [&](const std::string& record) { Note(ReadLauncherRecord(record)); });
    }
  }
}

void Launched::Read(Stream& stream, const std::function<void(const std::string& text)>& take) {
  std::array<char, 4096> bytes{};
  const ssize_t got = read(stream.descriptor, bytes.data(), bytes.size());
  if (got > 0) stream.partial.append(bytes.data(), static_cast<std::size_t>(got));
  for (auto end = stream.partial.find(stream.end); end != std::string::npos;
       end = stream.partial.find(stream.end)) {
    take(stream.partial.substr(0, end));
    stream.partial.erase(0, end + 1);
  }
  if (got > 0 || (got < 0 && errno == EINTR)) return;
  if (!stream.partial.empty()) take(stream.partial);
  CloseStream(stream);
}

/// Prints a line of a child; the lines of all but the first begin with the child's name.
void Launched::Line(const Child& child, const std::string& line) {
  std::cerr << (&child == &children_.front() ? "" : child.name + ": ") + line + "\n" << std::flush;
}

void Launched::Note(const LauncherRecord& record) {
  if (record.kind == LauncherRecord::Kind::kRunDirectory) {
    run_directory_ = record.directory;
    return;
  }
  const Failure& failure = record.cause;
  if (failure.empty()) return;  // truncated: the child was killed
  const auto known = std::ranges::find(causes_, failure, &Cause::failure);
  if (known != causes_.end()) {
    ++known->count;
  } else {
    causes_.push_back({failure, 1});
  }
}

void Launched::Reap() {
  for (Child& child : children_) {
    if (!child.running) continue;
    const pid_t reaped = waitpid(child.pid, &child.status, WNOHANG | WUNTRACED | WCONTINUED);
    if (reaped == 0 ? !HasEnded(child) : reaped != child.pid) continue;
    if (WIFSTOPPED(child.status)) {
      child.stopped = true;  // it may continue until the job fails because of it
      child.stopped_at = Clock::now();
      continue;
    }
    if (WIFCONTINUED(child.status)) {
      child.stopped_at.reset();
      continue;
    }
    child.running = false;
    if (asked_ != 0 && KilledBy(child.status, asked_)) {
      unready_ = true;
      if (failed_at_ == Clock::time_point{}) failed_at_ = Clock::now();
      continue;
    }
    const int code = CodeOf(child.status);
    // A child that the launcher ended is not a cause.
    if (code == kExitDone || escalations_ > 0 || (child.stopped && !causes_.empty())) continue;
    if (WIFSIGNALED(child.status)) {
      killed_by_others_ = child.killed = true;
      causes_.insert(causes_.begin(), {{KilledLine(child), FailureKind::kLost}, 1});
    }
    if (exit_code_ == kExitDone || WIFSIGNALED(child.status)) exit_code_ = code;
    if (failed_at_ == Clock::time_point{}) failed_at_ = Clock::now();
  }
}

/// Returns whether the child has ended but cannot be reaped, since a tracer holds it.
bool Launched::HasEnded(Child& child) {
  if (child.err.descriptor >= 0) return false;
  const auto state = StateOf(child.pid);
  if (!state || state->letter != 'Z') return false;
  if (child.ended_at == Clock::time_point{}) child.ended_at = Clock::now();
  if (Clock::now() - child.ended_at < kReaping) return false;
  child.status = state->status;
  std::cerr << WarningOf(child, "cannot be reaped", *state) << std::flush;
  return true;
}

/// Fails the job if a child is stopped for too long. Before the processes have met, the others
/// would wait for it until cluster.join_timeout_s.
void Launched::NameStopped() {
  if (failed_at_ != Clock::time_point{}) return;
  for (const Child& child : children_) {
    if (!child.running || !child.stopped_at || child.longest_stop.count() == 0) continue;
    if (Clock::now() - *child.stopped_at < child.longest_stop) continue;
    causes_.insert(causes_.begin(), {{StoppedLine(child), FailureKind::kLost}, 1});
    killed_by_others_ = true;
    exit_code_ = kExitLost;
    failed_at_ = Clock::now();
    return;
  }
}

/// After a failure the other children end by themselves. Sends SIGTERM and later SIGKILL to those
/// that do not.
void Launched::EndOthers() {
  if (failed_at_ == Clock::time_point{} || !AnyRunning()) return;
  const auto since = Clock::now() - failed_at_;
  for (const Child& child : children_) {
    // A stopped process cannot end by itself.
    if (child.running && child.stopped && since > kStopped) kill(child.pid, SIGKILL);
  }
  const auto follow = killed_by_others_ || unready_ ? kFollowKilled : kFollow;
  if (escalations_ == 0 && since > follow) {
    ++escalations_;
    Signal(SIGTERM);
  } else if (escalations_ == 1 && since > follow + kTerminating) {
    ++escalations_;
    ReportCause();  // the rest may take long
    Signal(SIGKILL);
    killed_at_ = Clock::now();
  }
}

/// Stops waiting for children that SIGKILL does not end, and for streams without a writer.
void Launched::GiveUp() {
  const auto now = Clock::now();
  const auto since = [now](Clock::time_point& moment) {
    if (moment == Clock::time_point{}) moment = now;
    return now - moment;
  };
  if (AnyRunning()) {
    if ((!killed_ && escalations_ < 2) || since(killed_at_) < kReaping) return;
    for (Child& child : children_) {
      if (!child.running) continue;
      child.running = false;
      left_behind_ = true;
      const auto state = StateOf(child.pid);
      std::cerr << WarningOf(child, "does not end after SIGKILL and is left running",
                             state.value_or(ChildState()))
                << std::flush;
    }
  } else if (since(ended_at_) < kLastLines) {
    return;
  }
  for (Child& child : children_) {
    CloseStream(child.err);
    CloseStream(child.causes);
  }
}

void Launched::ReportCause() {
  if (causes_.empty() || killed_) return;
  reported_ = true;
  int echoes = -1;
  for (const Cause& cause : causes_) echoes += cause.count;
  if (echoes > 0) {
    std::cerr << "(" << echoes << (echoes == 1 ? " more process" : " more processes")
              << " ended for the reason below)\n";
  }
  PrintCause(causes_.front().failure, Advice());
}

std::string Launched::Advice() const {
  const Child& first = children_.front();
  const bool silent =
      !first.running && WIFSIGNALED(first.status) && (first.stopped || first.killed);
  if (!silent || run_directory_.empty()) return "";
  return AdviceAfterFailure(kind(), run_directory_);
}

}  // namespace

ChildrenEnd RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt) {
  Launched launched(children);
  interrupt.OnSignal([&launched, count = 0](int signal) mutable {
    if (signal == SIGUSR1) return launched.SignalFirst(signal);
    if (count++ == 0) {
      std::cerr << kFinishingLine << std::flush;
    }
    if (count == 1) return launched.Ask(signal);
    launched.Kill();
  });
  const int exit_code = launched.Run();
  interrupt.OnSignal(nullptr);
  if (!launched.killed()) return {exit_code, launched.kind()};
  std::cerr << kEndedAtOnceLine << std::flush;
  return {ExitCodeOfSignal(interrupt.signal())};
}

void EndWithParent(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launcher) raise(SIGTERM);  // it had ended before prctl
}

}  // namespace troupe
