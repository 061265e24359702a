#include "app/launcher.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "app/cause.hpp"
#include "app/child.hpp"
#include "app/exit_code.hpp"
#include "app/launched_child.hpp"
#include "app/resume.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using Child = LaunchedChild;
using Stream = LaunchedChild::Stream;

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

/// A cause, and the number of children that reported it.
struct Cause {
  Failure failure;
  int count = 0;
};

void WarnOf(const Child& child, const std::string& problem, const ChildState& state) {
  PrintWarning(child.name + " (process " + std::to_string(child.pid) + ") " + problem + ": " +
               Describe(state));
}

/// Returns the time since `moment`, which is now if it is not set.
Clock::duration Since(std::optional<Clock::time_point>& moment) {
  const auto now = Clock::now();
  return now - moment.emplace(moment.value_or(now));
}

class Launched {
 public:
  Launched(const std::vector<ChildProcess>& processes, int restarts)
      : processes_(processes), restarts_(restarts) {
    try {
      for (std::size_t place = 0; place < processes.size(); ++place) {
        Start(place, processes[place].generation);
      }
    } catch (...) {
      for (const Child& child : children_) kill(child.pid, SIGKILL);
      throw;
    }
  }

  bool killed() const { return killed_; }

  // The next three are called from another thread.

  /// Sends `signal` to process 0 only.
  void SignalFirst(int signal) {
    const std::lock_guard lock(mutex_);
    for (const Child& child : children_) {
      if (child.place == 0 && child.running) kill(child.pid, signal);
    }
  }

  /// Asks all children to end in order. A child without handlers yet ends immediately.
  void Ask(int signal) {
    const std::lock_guard lock(mutex_);
    asked_ = signal;
    Signal(signal);
  }

  /// Kills all children. Their output after this is not a cause.
  void Kill() {
    const std::lock_guard lock(mutex_);
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
      const bool is_start = children_.size() == processes_.size();
      std::cerr << (is_start ? "interrupted before anything had begun\n" : kEndedAtOnceLine)
                << std::flush;
      return ExitCodeOfSignal(asked_);
    }
    if (!reported_ || left_behind_) ReportCause();
    return exit_code_;
  }

 private:
  void Signal(int signal) {
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, signal);
    }
  }
  void Start(std::size_t place, std::int64_t generation);
  void ReadSome();
  void Read(Stream& stream, const std::function<void(const std::string& text)>& take);
  void Line(const Child& child, const std::string& line);
  void Note(Child& child, const LauncherRecord& record);
  /// How to resume, if process 0 was killed before it could print it; else empty.
  std::string Advice() const;
  void Reap();
  /// Reads what a child that has ended had sent before.
  void Drain(Child& child);
  /// Whether a child that is lost may be started again.
  bool MayStartAgain(const Child& lost) const;
  /// Starts the lost child again. Returns false if it may not.
  bool StartAgain(std::size_t lost);
  /// Starts another in the place of one that has ended.
  void Replace(std::size_t ended, std::int64_t generation);
  /// A child has ended well: another may have to be started in its place, or the job is done.
  void NoteDone(std::size_t place);
  const Child& Current(std::size_t place) const {
    return *std::ranges::find_if(
        children_, [place](const Child& child) { return child.place == place && !child.replaced; });
  }
  static bool HasEnded(Child& child);
  void NameStopped();
  void EndOthers();
  void GiveUp();
  void ReportCause();
  /// Makes the loss of a child, which `line` describes, the cause.
  void Blame(std::string line, int exit_code);
  bool AnyRunning() const { return std::ranges::any_of(children_, &Child::running); }
  bool AnyOpen() const {
    return std::ranges::any_of(children_, [](const Child& child) {
      return child.err.descriptor || child.causes.descriptor;
    });
  }

  const std::vector<ChildProcess>& processes_;
  const int restarts_;
  mutable std::mutex mutex_;     ///< held to change children_, asked_ and killed_, or to signal
  std::vector<Child> children_;  ///< also those that were replaced
  std::vector<Cause> causes_;
  int exit_code_ = kExitDone;
  std::optional<Clock::time_point> failed_at_;
  /// The first child has ended well, and so has the job. One that was started again may not know.
  std::optional<Clock::time_point> done_at_;
  int escalations_ = 0;                         ///< 1: SIGTERM was sent to the others, 2: SIGKILL
  bool reported_ = false;                       ///< the cause was printed
  bool left_behind_ = false;                    ///< a child could not be ended
  std::optional<Clock::time_point> killed_at_;  ///< SIGKILL was sent to all
  std::optional<Clock::time_point> ended_at_;   ///< all children have ended
  bool killed_by_others_ = false;               ///< a child
  std::atomic<int> asked_ = 0;                  ///< the signal that was forwarded to all
  std::string run_directory_;                   ///< as process 0 reported it; empty until then
  bool unready_ = false;                        ///< `asked_` ended a child without a handler yet
  std::atomic<bool> killed_ = false;
};

void Launched::Start(std::size_t place, std::int64_t generation) {
  ChildProcess process = processes_[place];
  process.generation = generation;
  if (generation > 0) {
    process.arguments.insert(process.arguments.end(), {"--generation", std::to_string(generation)});
  }
  StartedChild started = StartChild(process);
  Child& child = children_.emplace_back();
  child.place = place;
  child.started = generation;
  child.name = process.name;
  child.longest_stop = process.longest_stop;
  child.leads = process.leads;
  child.pid = started.pid;
  child.err.descriptor = std::move(started.err);
  child.causes.descriptor = std::move(started.causes);
  child.causes.end = '\0';
}

void Launched::ReadSome() {
  std::vector<pollfd> polls;
  for (const Child& child : children_) {
    polls.push_back({child.err.descriptor.get(), POLLIN, 0});
    polls.push_back({child.causes.descriptor.get(), POLLIN, 0});
  }
  poll(polls.data(), polls.size(), 100);
  const auto ready = [](const pollfd& entry) { return entry.fd >= 0 && entry.revents != 0; };
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    if (ready(polls[2 * i])) {
      Read(child.err, [&](const std::string& line) { Line(child, line); });
    }
    if (ready(polls[2 * i + 1])) {
      Read(child.causes,
           [&](const std::string& record) { Note(child, ReadLauncherRecord(record)); });
    }
  }
}

void Launched::Read(Stream& stream, const std::function<void(const std::string& text)>& take) {
  std::array<char, 4096> bytes{};
  const ssize_t got = read(stream.descriptor.get(), bytes.data(), bytes.size());
  if (got > 0) stream.partial.append(bytes.data(), static_cast<std::size_t>(got));
  for (auto end = stream.partial.find(stream.end); end != std::string::npos;
       end = stream.partial.find(stream.end)) {
    take(stream.partial.substr(0, end));
    stream.partial.erase(0, end + 1);
  }
  if (got > 0 || (got < 0 && errno == EINTR)) return;
  if (!stream.partial.empty()) take(stream.partial);
  stream.descriptor.Close();
}

/// Prints a line of a child; the lines of all but the first begin with the child's name.
void Launched::Line(const Child& child, const std::string& line) {
  std::cerr << (child.place == 0 ? "" : child.name + ": ") + line + "\n" << std::flush;
}

void Launched::Note(Child& child, const LauncherRecord& record) {
  if (record.kind == LauncherRecord::Kind::kRunDirectory) {
    run_directory_ = record.directory;
    return;
  }
  if (record.kind == LauncherRecord::Kind::kGeneration) {
    child.joined = record.generation;
    return;
  }
  const Failure& failure = record.cause;
  if (failure.empty()) return;  // truncated: the child was killed
  child.reported = true;
  const auto known = std::ranges::find(causes_, failure, &Cause::failure);
  if (known != causes_.end()) {
    ++known->count;
  } else {
    causes_.push_back({failure, 1});
  }
}

void Launched::Blame(std::string line, int exit_code) {
  causes_.insert(causes_.begin(), {{std::move(line), FailureKind::kLost}, 1});
  killed_by_others_ = true;
  exit_code_ = exit_code;
}

void Launched::Drain(Child& child) {
  pollfd entry{child.causes.descriptor.get(), POLLIN, 0};
  while (child.causes.descriptor && poll(&entry, 1, 0) > 0) {
    Read(child.causes, [&](const std::string& record) { Note(child, ReadLauncherRecord(record)); });
  }
}

bool Launched::MayStartAgain(const Child& lost) const {
  return lost.times < restarts_ && lost.next_generation() <= restarts_ && !failed_at_ && !killed_;
}

bool Launched::StartAgain(std::size_t lost) {
  const std::lock_guard lock(mutex_);
  if (!MayStartAgain(children_[lost])) return false;
  if (done_at_) return true;
  const std::int64_t next = children_[lost].next_generation();
  std::cerr << "troupe: " << LossLine(children_[lost]) << "; starting it again, "
            << std::max<std::int64_t>(next, children_[lost].times + 1) << " of " << restarts_
            << " times\n"
            << std::flush;
  const std::size_t num_children = children_.size();
  for (std::size_t i = 0; i < num_children; ++i) {
    const Child& child = children_[i];
    const bool ended_well = !child.running && CodeOf(child.status) == kExitDone;
    if (i == lost || (ended_well && !child.replaced)) Replace(i, next);
  }
  return true;
}

void Launched::Replace(std::size_t ended, std::int64_t generation) {
  children_[ended].replaced = true;
  const std::size_t place = children_[ended].place;
  const int times = children_[ended].times + 1;
  Start(place, generation);
  children_.back().times = times;
  if (asked_ != 0) kill(children_.back().pid, asked_);  // its next generation is the last
}

void Launched::NoteDone(std::size_t done) {
  const std::lock_guard lock(mutex_);
  Child& child = children_[done];
  if (restarts_ == 0 || child.replaced) return;
  if (child.place == 0) {
    done_at_ = Clock::now();
    return;
  }
  // Process 0 was lost at the very end, and begins a generation that needs this one, too.
  const std::int64_t needed = Current(0).started;
  if (child.joined < needed && MayStartAgain(child)) Replace(done, needed);
}

void Launched::Reap() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];  // until another is started
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
    Drain(child);
    const int code = CodeOf(child.status);
    if (child.dismissed) continue;
    if (code == kExitReplaced) continue;  // by a spare, which this launcher does not know
    // Someone else has sent it to a child that had no handler yet.
    if (asked_ == 0 && AsksToEnd(child.status)) Ask(WTERMSIG(child.status));
    if (asked_ != 0 && KilledBy(child.status, asked_)) {
      unready_ = true;
    } else if (code == kExitDone) {
      NoteDone(i);
      continue;
    } else if (escalations_ > 0 || (child.stopped && !causes_.empty()) ||
               (code == kExitNotMet && done_at_) ||
               (code == kExitLost && !child.reported && StartAgain(i))) {
      // No cause is one that the launcher ended, that came when the job was done, or that is started
      // again.
      continue;
    } else if (WIFSIGNALED(child.status)) {
      child.killed = true;
      Blame(KilledLine(child), code);
    } else if (code == kExitLost && !child.reported && causes_.empty()) {
      Blame(LossLine(child), code);
    } else if (exit_code_ == kExitDone) {
      exit_code_ = code;
    }
    if (!failed_at_) failed_at_ = Clock::now();
  }
}

/// Returns whether the child has ended but cannot be reaped, since a tracer holds it.
bool Launched::HasEnded(Child& child) {
  if (child.err.descriptor) return false;
  const auto state = StateOf(child.pid);
  if (!state || state->letter != 'Z') return false;
  if (Since(child.ended_at) < kReaping) return false;
  child.status = state->status;
  WarnOf(child, "cannot be reaped", *state);
  return true;
}

/// Fails the job if a child is stopped for too long. Before the processes have met, the others
/// would wait for it until cluster.join_timeout_s.
void Launched::NameStopped() {
  if (failed_at_) return;
  for (const Child& child : children_) {
    if (!child.running || !child.stopped_at || child.longest_stop.count() == 0) continue;
    if (Clock::now() - *child.stopped_at < child.longest_stop) continue;
    if (MayStartAgain(child)) {
      kill(child.pid, SIGKILL);
      continue;
    }
    Blame(StoppedLine(child), kExitLost);
    failed_at_ = Clock::now();
    return;
  }
}

/// After a failure the other children end by themselves. Sends SIGTERM and later SIGKILL to those
/// that do not. When the job is done, ends those that wait for a generation of it.
void Launched::EndOthers() {
  if (done_at_ && !failed_at_ && Clock::now() - *done_at_ > kFollow) {
    for (Child& child : children_) {
      if (!child.running || child.joined >= child.started) continue;
      child.dismissed = true;
      kill(child.pid, SIGKILL);
    }
  }
  if (!failed_at_ || !AnyRunning()) return;
  const auto since = Clock::now() - *failed_at_;
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
  if (AnyRunning()) {
    if ((!killed_ && escalations_ < 2) || Since(killed_at_) < kReaping) return;
    for (Child& child : children_) {
      if (!child.running) continue;
      child.running = false;
      left_behind_ = true;
      WarnOf(child, "does not end after SIGKILL and is left running",
             StateOf(child.pid).value_or(ChildState()));
    }
  } else if (Since(ended_at_) < kLastLines) {
    return;
  }
  for (Child& child : children_) {
    child.err.descriptor.Close();
    child.causes.descriptor.Close();
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
  const Child& first = Current(0);
  const bool silent =
      !first.running && WIFSIGNALED(first.status) && (first.stopped || first.killed);
  if (!silent || run_directory_.empty()) return "";
  return AdviceAfterFailure(causes_.front().failure.kind, run_directory_);
}

}  // namespace

int RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt, int restarts) {
  Launched launched(children, restarts);
  interrupt.OnSignal([&launched, count = 0](int signal) mutable {
    if (!EndsJob(signal)) return launched.SignalFirst(signal);
    if (count++ == 0) {
      std::cerr << kFinishingLine << std::flush;
    }
    if (count == 1) return launched.Ask(signal);
    launched.Kill();
  });
  const struct Handler {  // it uses `launched`
    Interrupt& interrupt;
    ~Handler() { interrupt.OnSignal(nullptr); }
  } handler{interrupt};
  const int exit_code = launched.Run();
  if (!launched.killed()) return exit_code;
  std::cerr << kEndedAtOnceLine << std::flush;
  return ExitCodeOfSignal(interrupt.signal());
}

void EndWithParent(pid_t launcher, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != launcher) raise(signal);  // it had ended before prctl
}

}  // namespace troupe
