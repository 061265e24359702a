#include "app/generations.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "app/cause.hpp"
#include "app/describe.hpp"
#include "app/exit_code.hpp"
#include "app/feed.hpp"
#include "app/held_state.hpp"
#include "app/member.hpp"
#include "app/preflight.hpp"
#include "app/resume.hpp"
#include "app/run_events.hpp"
#include "app/run_spec.hpp"
#include "app/version.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "cluster/dialer.hpp"
#include "layout/text.hpp"
#include "modules/held_files.hpp"
#include "modules/task_thread.hpp"
#include "plan/reduced_job.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

/// A replacement may need longer for its start than this process did.
constexpr int kStartTimes = 3;
constexpr std::chrono::seconds kLongestFarewell{30};
/// Until spares have got their places and have joined.
constexpr std::chrono::seconds kTimeOfSpares{5};
/// Before the job meets again after a process left the meeting.
constexpr std::chrono::milliseconds kMeetAgain{300};

/// Returns whether `self`, which is not process 0, prints how to resume when process 0 is lost. The
/// launcher of process 0 does so itself; launchers on other nodes do not know the run directory.
bool AdvisesForFirst(const MemberArguments& member, const ProcessPlan& plan, ProcessId self) {
  return self != 0 && member.local_processes == 0 && SpeaksForNode(member, plan, self);
}

/// Whether processes hold states of the job in memory.
bool Mirrors(const RunSpec& run, const SelfInJob& job) {
  return run.config().checkpoint.replicas > 0 && run.arguments.restarts > 0 &&
         !run.arguments.work.verify && job.plan.num_processes() > 1;
}

/// The numbers of that many processes.
std::vector<ProcessId> Numbered(int processes) {
  std::vector<ProcessId> numbers(static_cast<std::size_t>(processes));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
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
        held_(Mirrors(run, job) ? std::make_shared<HeldFiles>() : nullptr),
        start_time_(std::chrono::ceil<std::chrono::milliseconds>(steady_clock::now() - job.began)),
        generation_(arguments_.generation),
        into_(arguments_.into) {
    work_.TakeLayouts(work_.whole().config());  // it may have been in a smaller job
  }
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
      const bool was_reduced = IsReduced();
      TakeLayouts(*joined);
      if (IsFirst() && (was_reduced || IsReduced())) AnnounceSize();
      if (IsFirst()) ChooseState(joined->roster);
      const JobEnd end = RunOne(*std::move(joined));
      if (!end.goes_on) return Finish(end);
      lost_ = end.failure;
      if (held_ && lost_->kind == FailureKind::kDamaged) held_->Clear();  // it may be damaged, too
      ++generation_;
      EndOnSignal(nullptr);
      // After EndOnSignal: its handler takes a queued signal for the second one if stops_soon_ is set.
      if (interrupt_.signal() != 0) stops_soon_ = true;
    }
  }

 private:
  bool IsFirst() const { return job_.self == 0; }

  /// At a signal, while the job meets: ends the process, after `undo`. If the job has begun before, the
  /// first signal ends the next generation soon.
  void EndOnSignal(std::function<void()> undo) {
    interrupt_.OnSignal([this, undo = std::move(undo), has_begun = generation_ > 0](int signal) {
      if (!EndsJob(signal)) return;
      if (has_begun && !stops_soon_.exchange(true)) {
        if (!arguments_.member.child()) std::cerr << kFinishingLine << std::flush;
        return;
      }
      if (undo) undo();
      QuickExit(ExitCodeOfSignal(signal));
    });
  }

  void PrepareToJoin();
  /// Lets feed machines connect to this process, if the job does.
  void OpenFeedAt(const std::string& host) {
    if (feed_) return;
    feed_ = OpenFeed(
        run_, work_, [this] { return key_; }, host);
  }
  /// Returns nullopt and sets `exit_code_` if the job does not meet.
  std::optional<Joined> Meet();
  /// Process 0: opens the run directory, and prints where the job begins.
  void OpenRun();
  /// The same for a later generation. If that fails, the meeting tells the others.
  void OpenAgain();
  /// Process 0, once the job has met: chooses the state to go on from.
  void ChooseState(const Roster& roster);
  /// How long the others wait for a lost process.
  std::chrono::milliseconds Patience() const;
  bool IsElastic() const {
    return run_.config().cluster.elastic && arguments_.restarts > 0 && !arguments_.work.verify &&
           arguments_.member.local_processes == 0;
  }
  /// Returns the job of some of its processes.
  Reduction ReduceTo(const std::vector<ProcessId>& places) const {
    return ReduceJob(work_.whole().config(), job_.plan, places);
  }
  /// For how long process 0 stays when others may not know that the job is done: they notice that they
  /// have lost it, or are started again. Then they call it, and once more if no answer comes.
  std::chrono::milliseconds Farewell() const {
    return std::min<std::chrono::milliseconds>(
        Milliseconds(run_.config().cluster.dead_after_s) + kStartTimes * start_time_ + kConnectTime,
        kLongestFarewell);
  }
  /// Makes this generation the job of the processes that have met.
  void TakeLayouts(Joined& joined);
  /// Process 0: prints with how many processes the job goes on.
  void AnnounceSize() const;
  bool IsReduced() const { return std::ssize(places_) < job_.plan.num_processes(); }
  /// The processes without which this generation goes on.
  std::vector<ProcessId> Away() const;
  /// Whether the job would have more ranks with so many spares.
  bool GrowsWith(int spares) const;
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
  const std::shared_ptr<HeldFiles> held_;  ///< null: nothing is mirrored
  const std::shared_ptr<TaskThread> memory_writer_ = std::make_shared<TaskThread>();
  /// How long this process took from its start until it could join: a replacement takes as long.
  const std::chrono::milliseconds start_time_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<FeedEntrance> feed_;  ///< null: this process takes no samples of feed machines
  JoinOptions options_;
  std::int64_t generation_;  ///< to join; then the one that has been joined
  // Of this generation: all processes, or those with which it goes on.
  std::shared_ptr<const ProcessPlan> processes_ = std::make_shared<const ProcessPlan>(job_.plan);
  ProcessId self_ = job_.self;
  std::vector<ProcessId> places_ =
      Numbered(job_.plan.num_processes());  ///< by process: in job_.plan
  std::string into_;                        ///< process 0: the run directory; empty: it makes one
  std::string advised_;     ///< the run directory, if this process says for process 0 how to resume
  bool announced_ = false;  ///< where this generation begins
  std::string layout_;      ///< of this generation, if it is reduced, for people
  std::atomic<bool> stops_soon_ = false;  ///< the user asked the last generation to end
  bool from_memory_ = false;              ///< it began with a state in memory
  std::optional<Failure> lost_;  ///< what ended the generation before, if this process saw it
  int exit_code_ = kExitDone;
};

void Generations::PrepareToJoin() {
  options_ = MemberOptions(work_, run_, job_);
  tls_ = TlsOf(run_.config().cluster, job_.seed, options_.timeout);
  options_.tls = tls_.get();
  if (IsFirst()) OpenFeedAt("");
  if (!IsFirst() || !IsElastic()) return;
  options_.patience = Patience();
  options_.why_too_few = [this](const auto& present) { return ReduceTo(present).why_not; };
}

void Generations::OpenAgain() {
  try {
    const auto limit = Milliseconds(run_.config().cluster.wait_for_spare_s / 2);
    if (!publishing_->try_lock_for(limit)) {
      throw std::runtime_error(into_ + ": publishing a checkpoint does not end (a broken disk?)");
    }
    publishing_->unlock();  // the last generation begins no more of it
    const bool was_on_disk = lost_ && !from_memory_;
    if (!was_on_disk || HasSoundCheckpoint(lost_->kind, into_)) {
      OpenRun();
      if (lost_ || !work_.is_done()) return;
      // An earlier process 0 was lost after the last step, before it wrote the report.
      options_.refusal = DoneProblem();
      options_.refusal_time = std::max(options_.refusal_time, Farewell());
      return;
    }
    options_.refusal = {lost_->text, JoinFault::kEnded};
  } catch (const std::exception& e) {
    options_.refusal = {e.what(), JoinFault::kEnded};
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
    WarnOfMirrors(run_.config().checkpoint, arguments_.restarts, job_.plan.num_processes());
    if (run_.config().cluster.elastic && !IsElastic()) {
      PrintWarning("cluster.elastic has no effect " +
                   std::string(arguments_.restarts == 0 ? "without --restarts: a loss ends the job"
                                                        : "with --local: no machine can be lost"));
    }
  }
  announced_ = generation_ == 0;
  if (announced_) work_.Announce();
}

void Generations::ChooseState(const Roster& roster) {
  const auto held = held_ ? NewestHeld(roster.members) : std::nullopt;
  from_memory_ = held && work_.GoOnFrom(*held);
  if (from_memory_ || !announced_) work_.Announce();
  if (generation_ == 0 || into_.empty()) return;
  const Work::Beginning beginning = work_.beginning();
  try {
    NoteEvent(into_, {.time = {},
                      .generation = generation_,
                      .step = beginning.step,
                      .from = beginning.from,
                      .cause = lost_ ? lost_->text : job_.plan.Of(0).name + " was lost",
                      .layout = IsReduced() ? layout_ : ""});
  } catch (const std::exception& e) {
    PrintWarning(e.what());
  }
}

std::optional<Joined> Generations::Meet() {
  const ClusterConfig& cluster = run_.config().cluster;
  options_.self.generation = generation_;
  if (held_) options_.self.held = HeldBy(*held_);
  options_.timeout = Milliseconds(cluster.join_timeout_s);
  if (generation_ > 0) {
    auto patience = Patience();
    // After about the first half the job may go on without some.
    if (IsElastic()) patience = 2 * patience + kTimeOfSpares;
    // A process in another's place does not know whether the others have met before.
    options_.timeout = lost_ ? patience : std::max(options_.timeout, patience);
  }
  if (IsFirst()) generation_ == 0 ? OpenRun() : OpenAgain();
  options_.away = Away();
  const int most = (arguments_.restarts + 1) * job_.plan.num_processes();
  const auto no_meeting_after = steady_clock::now() + 2 * options_.timeout;
  for (int meetings = 1;; ++meetings) {
    try {
      return Join(key_, options_);
    } catch (const JoinError& e) {
      // While process 0 is not there, its port may be in use for a moment.
      const bool is_wrong = IsFirst() && e.fault == JoinFault::kWrongFirst;
      const bool passes =
          (MeetsAgain(e.fault) && !is_wrong) || (e.fault == JoinFault::kListen && generation_ > 0);
      const bool is_last = meetings == most || steady_clock::now() > no_meeting_after;
      if (!options_.lasting || is_last || !passes) {
        ReportNotMet(e);
        return std::nullopt;
      }
      if (MeetsAgain(e.fault) && options_.print) {
        options_.print(std::string(e.what()) + "; meeting again");
      }
    }
    std::this_thread::sleep_for(kMeetAgain);
  }
}

std::chrono::milliseconds Generations::Patience() const {
  return std::max(Milliseconds(run_.config().cluster.wait_for_spare_s), kStartTimes * start_time_);
}

void Generations::TakeLayouts(Joined& joined) {
  std::vector<ProcessId> places;
  for (const Hello& member : joined.roster.members) places.push_back(member.process);
  const bool is_other = places != std::exchange(places_, places);
  const auto number_of = [&](ProcessId place) {
    return static_cast<ProcessId>(std::ranges::lower_bound(places_, place) - places_.begin());
  };
  for (Hello& member : joined.roster.members) member.process = number_of(member.process);
  for (Peer& peer : joined.peers) peer.process = number_of(peer.process);
  if (!is_other) return;
  ReducedJob job = ReduceTo(places_).job.value();  // process 0 has looked
  self_ = number_of(job_.self);
  processes_ = std::make_shared<const ProcessPlan>(std::move(job.processes));
  layout_ = ReductionText(work_.whole().config(), job.config);
  work_.TakeLayouts(job.config);
}

void Generations::AnnounceSize() const {
  std::string text = IsReduced() ? "going on with " + layout_ : "all processes are there again";
  if (IsReduced() && generation_ >= arguments_.restarts) {
    text +=
        "; --restarts " + std::to_string(generation_) + " is used up, so it cannot become larger";
  }
  std::cout << text + "\n" << std::flush;
}

std::vector<ProcessId> Generations::Away() const {
  std::vector<ProcessId> away = Numbered(job_.plan.num_processes());
  std::erase_if(away,
                [this](ProcessId process) { return std::ranges::binary_search(places_, process); });
  return away;
}

bool Generations::GrowsWith(int spares) const {
  std::vector<ProcessId> places = places_;
  for (const ProcessId process : Away()) {
    if (spares-- > 0) places.push_back(process);
  }
  std::ranges::sort(places);
  const Reduction larger = ReduceTo(places);
  return larger.job && larger.job->config.cluster.ranks > processes_->num_ranks();
}

void Generations::ReportNotMet(const JoinError& error) {
  if (feed_ && IsFirst()) {
    feed_->End(error.fault == JoinFault::kDone ? Failure() : Failure(error.what()));
  }
  switch (error.fault) {
    case JoinFault::kEnded:
      exit_code_ = kExitFailed;
      return PrintCause(error.what());
    case JoinFault::kDone:
      exit_code_ = kExitDone;
      SendGenerationToLauncher(generation_);  // this process is not needed again
      if (IsFirst()) return work_.FinishDone();
      std::cerr << (arguments_.member.child() ? "" : job_.plan.Of(job_.self).name + ": ") +
                       "the job is done\n"
                << std::flush;
      return;
    case JoinFault::kTaken:
      throw PlaceTaken(error.what());
    default:
      break;
  }
  exit_code_ = generation_ == 0 ? kExitNotMet : kExitLost;
  const FailureKind kind = generation_ == 0 ? FailureKind::kError : FailureKind::kLost;
  std::string lines = work_.RemoveUnused();
  const bool speaks = IsFirst() || error.fault == JoinFault::kUnreachable;
  const std::string& directory = IsFirst() ? into_ : advised_;
  if (speaks && generation_ > 0 && lines.empty() && !directory.empty()) {
    lines = AdviceAfterFailure(kind, directory);
  }
  PrintCause({(lost_ ? lost_->text + "; the job could not go on: " : "") + error.what(), kind},
             lines);
}

JobEnd Generations::RunOne(Joined joined) {
  interrupt_.OnSignal(nullptr);
  JobSetup setup = work_.Setup(IsFirst());
  const std::string& directory = joined.roster.run_directory;
  if (!directory.empty() && AdvisesForFirst(arguments_.member, job_.plan, job_.self)) {
    advised_ = directory;
    setup.after_failure = [directory](FailureKind kind) {
      return AdviceAfterFailure(kind, directory);
    };
  }
  OpenFeedAt(FindMember(joined.roster, self_)->address.host);
  if (feed_) setup.feed = &feed_->port();
  setup.interrupt = &interrupt_;
  setup.stops_soon = stops_soon_;
  setup.quiet = arguments_.member.child();
  setup.writer = writer_;
  setup.publishing = publishing_;
  setup.may_replace = run_.config().cluster.replace_slow && generation_ < arguments_.restarts;
  if (held_) {
    setup.held = held_;
    setup.memory_writer = memory_writer_;
    setup.copies_state = true;
    setup.checkpoints.mirror_every = run_.config().checkpoint.mirror_every;
    setup.checkpoints.held_folder = [run = setup.checkpoints.run_directory,
                                     generation = generation_](std::int64_t steps) {
      return HeldFolder(run, steps, generation);
    };
  }
  if (IsFirst() && IsElastic() && IsReduced() && generation_ < arguments_.restarts) {
    setup.grows_with = [this](int spares) { return GrowsWith(spares); };
  }
  if (options_.lasting) setup.farewell = Farewell();
  if (IsFirst() && setup.after_failure && options_.lasting && generation_ >= arguments_.restarts) {
    setup.after_failure = [next = std::move(setup.after_failure),
                           times = arguments_.restarts](FailureKind kind) {
      const bool is_last = kind == FailureKind::kLost || kind == FailureKind::kDamaged;
      return (is_last ? "--restarts " + std::to_string(times) + " is used up\n" : "") + next(kind);
    };
  }
  SendGenerationToLauncher(generation_);
  std::erase_if(setup.faults,
                [this](const PlantedFault& fault) { return fault.generation != generation_; });
  setup.goes_on = [this](const Failure& failure) {
    return GoingOnLine(failure, generation_, run_, interrupt_);
  };
  if (IsFirst() && (!lost_ || IsReduced())) {
    const std::string table = ProcessTable(*setup.plan, *processes_, &joined.roster);
    std::cout << (table.empty() ? "" : table + "\n") << std::flush;
  }
  return RunAmongProcesses(setup, {processes_, self_, key_, std::move(joined)});
}

int Generations::Finish(const JobEnd& end) {
  if (feed_ && IsFirst()) feed_->End(end.failure, interrupt_.signal() != 0);
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
  const bool grows = failure.kind == FailureKind::kGrows;
  const bool may_go_on = is_lost || grows || failure.kind == FailureKind::kDamaged;
  if (!may_go_on || generation >= restarts) return std::nullopt;
  // After a loss the next generation ends as the user wishes.
  if (interrupt.signal() != 0 && failure.kind == FailureKind::kDamaged) return std::nullopt;
  const std::string next = is_lost ? "waiting for a process in its place"
                           : grows ? "meeting again with them"
                                   : "leaving the damaged state";
  return "troupe: " + failure.text + "; " + next + ", " + std::to_string(generation + 1) + " of " +
         std::to_string(restarts) + " times";
}

JoinOptions MemberOptions(const Work& work, const RunSpec& run, const SelfInJob& job) {
  const MemberArguments& member = run.arguments.member;
  JoinOptions options = JoinOptionsOf(run.config(), job.plan, job.self, job.seed, member);
  options.self.config += work.Task();
  if (run.arguments.restarts > 0) options.self.config += "--restarts = more than 0\n";
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
