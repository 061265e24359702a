#include "cli/launcher.hpp"

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

#include "cli/cause.hpp"
#include "cli/child_state.hpp"
#include "cli/commands.hpp"
#include "cli/restart.hpp"
#include "cli/start_child.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

/// When one has failed, the others have this long to follow, and this long once they are asked to.
constexpr std::chrono::seconds kFollow{6};
/// The others see at once that a process was killed, unless they have not met yet.
constexpr std::chrono::seconds kFollowKilled{3};
constexpr std::chrono::milliseconds kStopped{500};
constexpr std::chrono::seconds kPlea{5};
/// For the system to end and hand over a process that was killed. One that waits for a broken disk,
/// or whose tracer does not let it go, would take forever.
constexpr std::chrono::seconds kReaping{3};
/// For the last lines of children that have ended; another process may hold their stream open.
constexpr std::chrono::seconds kLastLines{2};

/// Text that a child writes, cut at each `end`.
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
  bool killed = false;                            ///< by a signal that did not come from here
  bool stopped = false;                           ///< by a signal, once; it may have gone on since
  std::chrono::milliseconds longest_stop{0};      ///< as ChildProcess has it
  std::optional<Clock::time_point> stopped_at{};  ///< while it is stopped
  int status = 0;                                 ///< as waitpid gives it
  Clock::time_point ended_at{};  ///< it has ended, and the system does not hand it over
};

/// Why children failed, in the order of arrival.
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

/// What a child that has ended would have exited with. A closed output is the user's doing, and a
/// new start would meet it again: no loss.
int CodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Unread(status) ? kExitFailed : kExitLost;
}

std::string KilledLine(const Child& child) {
  if (Unread(child.status)) return "nobody reads the output of " + child.name + " any more";
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
      NameStopped();
      HurryUp();
      GiveUp();
    }
    if (unready_) {
      std::cerr << "interrupted before anything had begun\n" << std::flush;
      return 128 + asked_;
    }
    if (!told_ || left_behind_) TellCause();
    return exit_code_;
  }

 private:
  void Start(const ChildProcess& process);
  void ReadSome();
  void Read(Stream& stream, const std::function<void(const std::string& text)>& take);
  void Line(const Child& child, const std::string& line);
  void Note(const LauncherRecord& record);
  /// Process 0 ended without a word, so the launcher prints how to resume.
  std::string Advice() const;
  void Reap();
  static bool HasEnded(Child& child);
  void NameStopped();
  void HurryUp();
  void GiveUp();
  void TellCause();
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
  int pleas_ = 0;
  bool told_ = false;              ///< the cause
  bool left_behind_ = false;       ///< a child runs on
  Clock::time_point killed_at_{};  ///< SIGKILL was sent to all
  Clock::time_point ended_at_{};   ///< none runs any more
  bool killed_by_others_ = false;  ///< a child
  std::atomic<int> asked_ = 0;     ///< the signal that came for all
  std::string run_directory_;      ///< of the job, once process 0 has one
  bool unready_ = false;           ///< it ended a child before that could handle it
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

/// The first child's lines are the program's; those of others begin with their names.
void Launched::Line(const Child& child, const std::string& line) {
  std::cerr << (&child == &children_.front() ? "" : child.name + ": ") + line + "\n" << std::flush;
}

void Launched::Note(const LauncherRecord& record) {
  if (record.kind == LauncherRecord::Kind::kRunDirectory) {
    run_directory_ = record.directory;
    return;
  }
  const Failure& failure = record.cause;
  if (failure.empty()) return;  // cut short, by a child that was killed
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
      child.stopped = true;  // until the job fails for it, it may go on
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
    // Who was made to end is no cause.
    if (code == kExitDone || pleas_ > 0 || (child.stopped && !causes_.empty())) continue;
    if (WIFSIGNALED(child.status)) {
      killed_by_others_ = child.killed = true;
      causes_.insert(causes_.begin(), {{KilledLine(child), FailureKind::kLost}, 1});
    }
    if (exit_code_ == kExitDone || WIFSIGNALED(child.status)) exit_code_ = code;
    if (failed_at_ == Clock::time_point{}) failed_at_ = Clock::now();
  }
}

/// Whether it has ended although the system does not hand it over: a tracer gets it first.
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

/// Before the processes have met, a stopped one is only missing to the others: they would wait for
/// it until cluster.join_timeout_s.
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
    TellCause();  // what follows may take long
    Signal(SIGKILL);
    killed_at_ = Clock::now();
  }
}

/// Waits no longer for what SIGKILL does not end, nor for streams that no child writes to.
void Launched::GiveUp() {
  const auto now = Clock::now();
  const auto since = [now](Clock::time_point& moment) {
    if (moment == Clock::time_point{}) moment = now;
    return now - moment;
  };
  if (AnyRunning()) {
    if ((!killed_ && pleas_ < 2) || since(killed_at_) < kReaping) return;
    for (Child& child : children_) {
      if (!child.running) continue;
      child.running = false;
      left_behind_ = true;
      const auto state = StateOf(child.pid);
      std::cerr << WarningOf(child, "does not end and is left behind", state.value_or(ChildState()))
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

void Launched::TellCause() {
  if (causes_.empty() || killed_) return;
  told_ = true;
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
      std::cerr << "finishing the step under way; once more ends at once\n" << std::flush;
    }
    if (count == 1) return launched.Ask(signal);
    launched.Kill();
  });
  const int exit_code = launched.Run();
  interrupt.OnSignal(nullptr);
  if (!launched.killed()) return {exit_code, launched.kind()};
  std::cerr << "ended at once: the step under way was not saved\n" << std::flush;
  return {128 + interrupt.signal()};
}

void EndWithParent(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launcher) raise(SIGTERM);  // it was gone before
}

}  // namespace troupe
