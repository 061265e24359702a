#include "app/generations.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "app/cause.hpp"
#include "app/describe.hpp"
#include "app/exit_code.hpp"
#include "app/member.hpp"
#include "app/preflight.hpp"
#include "app/resume.hpp"
#include "app/run_spec.hpp"
#include "app/version.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "layout/text.hpp"
#include "modules/task_thread.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

/// Time for lines about a disk that is written, before the user is told.
constexpr std::chrono::seconds kQuietWrite{2};

/// Returns whether `self`, which is not process 0, prints how to resume when process 0 is lost. The
/// launcher of process 0 does so itself; launchers on other nodes do not know the run directory.
bool AdvisesForFirst(const MemberArguments& member, const ProcessPlan& plan, ProcessId self) {
  if (self == 0 || member.local_processes > 0) return false;
  const int node = plan.Of(self).node;
  return !member.child() || (node != plan.Of(0).node && plan.OfNode(node).front().process == self);
}

class Generations {
 public:
  Generations(Work& work, const RunSpec& run, const SelfInJob& job, Interrupt& interrupt)
      : work_(work),
        run_(run),
        arguments_(run.arguments),
        job_(job),
        interrupt_(interrupt),
        key_(ReadKey(arguments_.member)),
        generation_(arguments_.generation),
        into_(arguments_.into) {}
  ~Generations() { interrupt_.OnSignal(nullptr); }  // its handlers use this object
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;

  int Run() {
    EndOnSignal(nullptr);  // nothing to undo yet
    // A launcher counts the ranks of all its children together.
    if (!arguments_.member.child() && !arguments_.work.verify) {
      WarnOfCores(run_.config(), static_cast<int>(job_.plan.Of(job_.self).ranks.size()));
    }
    try {
      PrepareToJoin();
    } catch (const JoinError& e) {
      PrintCause(e.what());
      return kExitNotMet;
    }
    for (;;) {
      std::optional<Joined> joined = Meet();
      if (!joined) return exit_code_;
      generation_ = joined->roster.generation;
      const JobEnd end = RunOne(*std::move(joined));
      if (!end.goes_on) return Finish(end);
      lost_ = end.failure;
      ++generation_;
      EndOnSignal(nullptr);
    }
  }

 private:
  bool IsFirst() const { return job_.self == 0; }

  /// At a signal, before the job has begun: ends the process, after `undo`.
  void EndOnSignal(std::function<void()> undo) {
    interrupt_.OnSignal([undo = std::move(undo)](int signal) {
      if (!EndsJob(signal)) return;
      if (undo) undo();
      QuickExit(ExitCodeOfSignal(signal));
    });
  }

  void PrepareToJoin();
  /// Returns nullopt and sets `exit_code_` if the job does not meet.
  std::optional<Joined> Meet();
  /// Process 0: opens the run directory, and prints where the job begins.
  void OpenRun();
  /// The same for a later generation. If that fails, the meeting tells the others.
  void OpenAgain();
  /// Process 0: what the last generation wrote is on the disk.
  void AwaitWriter();
  void ReportNotMet(const JoinError& error);
  JobEnd RunOne(Joined joined);
  int Finish(const JobEnd& end);
  std::optional<std::string> LineOf(const Failure& failure) const;

  Work& work_;
  const RunSpec& run_;
  const ClusterArguments& arguments_;
  const SelfInJob& job_;
  Interrupt& interrupt_;
  const RunKey key_;
  const std::shared_ptr<TaskThread> writer_ = std::make_shared<TaskThread>(TaskPriority::kLow);
  std::unique_ptr<TlsContext> tls_;
  JoinOptions options_;
  std::int64_t generation_;      ///< to join; then the one that has been joined
  std::string into_;             ///< process 0: the run directory; empty: it makes one
  std::optional<Failure> lost_;  ///< what ended the generation before, if this process saw it
  int exit_code_ = kExitDone;
};

void Generations::PrepareToJoin() {
  const Config& config = run_.config();
  options_ = JoinOptionsOf(config, job_.plan, job_.self, job_.seed, arguments_.member);
  options_.self.config += work_.Task();
  options_.self.build = VersionText();
  options_.lasting = arguments_.restarts > 0;
  options_.answer_latecomers = options_.answer_latecomers || options_.lasting;
  tls_ = TlsOf(config.cluster, job_.seed, options_.timeout);
  options_.tls = tls_.get();
}

void Generations::AwaitWriter() {
  if (!lost_ || writer_->WaitFor(kQuietWrite)) return;
  std::cerr << "waiting for the disk: what was being written to " + into_ +
                   " when the job lost a process\n"
            << std::flush;
  const ClusterConfig& cluster = run_.config().cluster;
  if (!writer_->WaitFor(Milliseconds(cluster.pass_timeout_s))) {
    throw std::runtime_error(into_ + ": writing to it takes longer than cluster.pass_timeout_s");
  }
}

void Generations::OpenAgain() {
  try {
    AwaitWriter();
    if (!lost_ || HasSoundCheckpoint(lost_->kind, into_)) return OpenRun();
    options_.refusal = lost_->text;
  } catch (const std::exception& e) {
    options_.refusal = e.what();
  }
}

void Generations::OpenRun() {
  into_ = work_.OpenRunDirectory(into_);
  options_.run_directory = into_.empty() ? "" : std::filesystem::absolute(into_).string();
  EndOnSignal([&work = work_] { std::cerr << work.RemoveUnused(); });
  if (!lost_) {
    WarnOfRemarks(run_.loaded);
    if (generation_ == 0) work_.Warn();
  }
  work_.Announce();
}

std::optional<Joined> Generations::Meet() {
  const ClusterConfig& cluster = run_.config().cluster;
  options_.self.generation = generation_;
  options_.timeout =
      Milliseconds(generation_ == 0 ? cluster.join_timeout_s : cluster.wait_for_spare_s);
  if (IsFirst()) generation_ == 0 ? OpenRun() : OpenAgain();
  const auto deadline = steady_clock::now() + options_.timeout;
  for (;;) {
    try {
      return Join(key_, options_);
    } catch (const JoinError& e) {
      const auto left = deadline - steady_clock::now();
      if (e.fault != JoinFault::kLeft || !options_.lasting || left.count() <= 0) {
        ReportNotMet(e);
        return std::nullopt;
      }
      options_.timeout = std::chrono::ceil<std::chrono::milliseconds>(left);
    }
  }
}

void Generations::ReportNotMet(const JoinError& error) {
  if (error.fault == JoinFault::kEnded) {
    exit_code_ = kExitFailed;
    return PrintCause(error.what());
  }
  exit_code_ = generation_ == 0 ? kExitNotMet : kExitLost;
  const FailureKind kind = generation_ == 0 ? FailureKind::kError : FailureKind::kLost;
  PrintCause({(lost_ ? lost_->text + "; the job could not go on: " : "") + error.what(), kind},
             work_.RemoveUnused());
}

std::optional<std::string> Generations::LineOf(const Failure& failure) const {
  if (interrupt_.signal() != 0) return std::nullopt;
  std::optional<std::string> line = GoingOnLine(failure, generation_, run_);
  const bool launcher_says_it =
      failure.kind == FailureKind::kLost && arguments_.member.local_processes > 0;
  if (line && launcher_says_it) line = "";
  return line;
}

JobEnd Generations::RunOne(Joined joined) {
  interrupt_.OnSignal(nullptr);
  JobSetup setup = work_.Setup(IsFirst());
  const std::string& directory = joined.roster.run_directory;
  if (!directory.empty() && AdvisesForFirst(arguments_.member, job_.plan, job_.self)) {
    setup.after_failure = [directory](FailureKind kind) {
      return AdviceAfterFailure(kind, directory);
    };
  }
  setup.interrupt = &interrupt_;
  setup.quiet = arguments_.member.child();
  setup.writer = writer_;
  std::erase_if(setup.faults,
                [this](const PlantedFault& fault) { return fault.generation != generation_; });
  setup.goes_on = [this](const Failure& failure) { return LineOf(failure); };
  if (IsFirst() && !lost_) {
    std::cout << ProcessTable(*run_.plan, job_.plan, &joined.roster) << '\n' << std::flush;
  }
  return RunAmongProcesses(
      setup, {std::make_shared<const ProcessPlan>(job_.plan), job_.self, key_, std::move(joined)});
}

int Generations::Finish(const JobEnd& end) {
  const int exit_code = IsFirst()             ? work_.Finish(end)
                        : end.failure.empty() ? static_cast<int>(kExitDone)
                                              : ReportFailure(end);
  if (!end.failure.empty()) {
    if (tls_) tls_->Flush(steady_clock::now() + std::chrono::milliseconds(200));
    QuickExit(exit_code);
  }
  return exit_code;
}

}  // namespace

std::optional<std::string> GoingOnLine(const Failure& failure, std::int64_t generation,
                                       const RunSpec& run) {
  const bool is_lost = failure.kind == FailureKind::kLost;
  const int restarts = run.arguments.restarts;
  if (generation >= restarts || (!is_lost && failure.kind != FailureKind::kDamaged)) {
    return std::nullopt;
  }
  const ClusterConfig& cluster = run.config().cluster;
  const std::string next = is_lost ? "waiting up to " +
                                         InSeconds(Milliseconds(cluster.wait_for_spare_s)) +
                                         " for a process in its place"
                                   : "setting it aside";
  return "troupe: " + failure.text + "; " + next + ", " + std::to_string(generation + 1) + " of " +
         std::to_string(restarts) + " times";
}

bool HasSoundCheckpoint(FailureKind kind, const std::string& run_directory) {
  if (kind != FailureKind::kDamaged) return true;
  const auto line = SetAsideIfDamaged(run_directory);
  if (line) PrintWarning(*line);
  return line && NewestCheckpoint(run_directory);
}

int RunGenerations(Work& work, const RunSpec& run, const SelfInJob& job, Interrupt& interrupt) {
  return Generations(work, run, job, interrupt).Run();
}

}  // namespace troupe
