#include "app/generations.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
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

/// A replacement may need longer for its start than this process did.
constexpr int kStartTimes = 3;
/// Before the job meets again after a process left the meeting.
constexpr std::chrono::milliseconds kMeetAgain{300};

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
        start_time_(std::chrono::ceil<std::chrono::milliseconds>(steady_clock::now() - job.began)),
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
  void ReportNotMet(const JoinError& error);
  JobEnd RunOne(Joined joined);
  int Finish(const JobEnd& end);

  Work& work_;
  const RunSpec& run_;
  const ClusterArguments& arguments_;
  const SelfInJob& job_;
  Interrupt& interrupt_;
  const RunKey key_;
  const std::shared_ptr<TaskThread> writer_ = std::make_shared<TaskThread>(TaskPriority::kLow);
  const std::shared_ptr<std::timed_mutex> publishing_ = std::make_shared<std::timed_mutex>();
  /// How long this process took from its start until it could join: a replacement takes as long.
  const std::chrono::milliseconds start_time_;
  std::unique_ptr<TlsContext> tls_;
  JoinOptions options_;
  std::int64_t generation_;      ///< to join; then the one that has been joined
  std::string into_;             ///< process 0: the run directory; empty: it makes one
  std::optional<Failure> lost_;  ///< what ended the generation before, if this process saw it
  int exit_code_ = kExitDone;
};

void Generations::PrepareToJoin() {
  options_ = MemberOptions(work_, run_, job_);
  tls_ = TlsOf(run_.config().cluster, job_.seed, options_.timeout);
  options_.tls = tls_.get();
}

void Generations::OpenAgain() {
  try {
    const auto limit = Milliseconds(run_.config().cluster.wait_for_spare_s / 2);
    if (!publishing_->try_lock_for(limit)) {
      throw std::runtime_error(into_ + ": publishing a checkpoint does not end (a broken disk?)");
    }
    publishing_->unlock();  // the last generation begins no more of it
    if (!lost_ || HasSoundCheckpoint(lost_->kind, into_)) return OpenRun();
    options_.refusal = lost_->text;
  } catch (const std::exception& e) {
    options_.refusal = e.what();
  }
}

void Generations::OpenRun() {
  into_ = work_.OpenRunDirectory(into_);
  options_.run_directory = into_.empty() ? "" : std::filesystem::absolute(into_).string();
  options_.begins_anew = generation_ == 0 && work_.begins_anew();
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
  options_.timeout = generation_ == 0 ? Milliseconds(cluster.join_timeout_s)
                                      : std::max(Milliseconds(cluster.wait_for_spare_s),
                                                 kStartTimes * start_time_);
  if (IsFirst()) generation_ == 0 ? OpenRun() : OpenAgain();
  const int most = (arguments_.restarts + 1) * job_.plan.num_processes();
  for (int meetings = 1;; ++meetings) {
    try {
      return Join(key_, options_);
    } catch (const JoinError& e) {
      // While process 0 is not there, its port may be in use for a moment.
      const bool passes =
          e.fault == JoinFault::kLeft || (e.fault == JoinFault::kListen && generation_ > 0);
      if (!options_.lasting || meetings == most || !passes) {
        ReportNotMet(e);
        return std::nullopt;
      }
    }
    std::this_thread::sleep_for(kMeetAgain);
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
  setup.publishing = publishing_;
  SendGenerationToLauncher(generation_);
  std::erase_if(setup.faults,
                [this](const PlantedFault& fault) { return fault.generation != generation_; });
  setup.goes_on = [this](const Failure& failure) {
    return GoingOnLine(failure, generation_, run_, interrupt_);
  };
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
                                       const RunSpec& run, const Interrupt& interrupt) {
  const bool is_lost = failure.kind == FailureKind::kLost;
  const int restarts = run.arguments.restarts;
  const bool may_go_on = is_lost || failure.kind == FailureKind::kDamaged;
  if (!may_go_on || generation >= restarts || interrupt.signal() != 0) return std::nullopt;
  const std::string next =
      is_lost ? "waiting for a process in its place" : "setting the checkpoint aside";
  return "troupe: " + failure.text + "; " + next + ", " + std::to_string(generation + 1) + " of " +
         std::to_string(restarts) + " times";
}

JoinOptions MemberOptions(const Work& work, const RunSpec& run, const SelfInJob& job) {
  const MemberArguments& member = run.arguments.member;
  JoinOptions options = JoinOptionsOf(run.config(), job.plan, job.self, job.seed, member);
  options.self.config += work.Task();
  options.self.build = VersionText();
  options.lasting = run.arguments.restarts > 0;
  options.answer_latecomers = options.answer_latecomers || options.lasting;
  return options;
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
