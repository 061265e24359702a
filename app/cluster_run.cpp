#include "app/cluster_run.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/cause.hpp"
#include "app/describe.hpp"
#include "app/exit_code.hpp"
#include "app/handed_config.hpp"
#include "app/launcher.hpp"
#include "app/member.hpp"
#include "app/preflight.hpp"
#include "app/resume.hpp"
#include "app/run_directory.hpp"
#include "app/run_spec.hpp"
#include "app/version.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "cluster/environment.hpp"
#include "cluster/join_address.hpp"
#include "modules/device/backend.hpp"

namespace troupe {
namespace {

/// Appends the arguments that make a child do the same work.
void AddWorkWords(const WorkArguments& work, std::vector<std::string>& words) {
  for (const std::string& fault : work.faults) {
    words.push_back("--plant-fault");
    words.push_back(fault);
  }
  if (work.verify) {
    words.insert(words.end(), {"--verify", "--steps", std::to_string(work.steps)});
  }
}

/// The run directory of a job that may be restarted. Made before the first process starts; removed
/// by the destructor if no step was finished.
class LastingDirectory {
 public:
  explicit LastingDirectory(const RunSpec& run) : path_(run.arguments.into) {
    if (run.arguments.restarts == 0 || run.arguments.work.verify) return;
    const RunDirectory directory(run.config().run, run.loaded.resolved_toml, path_);
    path_ = directory.path();
    is_new_ = directory.is_new();
  }
  ~LastingDirectory() {
    // To standard output: the last line of standard error is the cause.
    if (is_new_) std::cout << RemoveUnused(path_) << std::flush;
  }
  LastingDirectory(const LastingDirectory&) = delete;
  LastingDirectory& operator=(const LastingDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_new_ = false;
};

/// Warns if a training run has more `ranks` here than this machine has cores.
void WarnOfRanks(const RunSpec& run, std::ptrdiff_t ranks) {
  if (!run.arguments.work.verify) WarnOfCores(run.config(), static_cast<int>(ranks));
}

/// Returns whether another start may succeed. The launcher of process 0, which has the run
/// directory, renames a damaged checkpoint first; the other launchers wait for process 0 to join.
bool MaySucceedAgain(const ChildrenEnd& end, const std::string& run_directory) {
  if (end.exit_code == kExitLost) return true;
  if (end.kind != FailureKind::kDamaged) return false;
  if (run_directory.empty()) return true;
  const auto line = SetAsideIfDamaged(run_directory);
  if (line) PrintWarning(*line);
  return line && NewestCheckpoint(run_directory);
}

/// Longer than processes that have met take to find a stopped one, since they report more about it.
std::chrono::milliseconds LongestStop(const ClusterConfig& cluster) {
  return Milliseconds(cluster.dead_after_s) + std::chrono::seconds(2);
}

/// Runs children for `mine` of the plan's processes until they succeed, fail for good, or have been
/// restarted `restarts` times. `meet` returns the arguments by which those of one attempt meet.
int RunMembers(const RunSpec& run, const ProcessPlan& plan, const std::vector<PlannedProcess>& mine,
               const std::function<MemberArguments()>& meet, Interrupt& interrupt) {
  const ClusterArguments& arguments = run.arguments;
  // Only the launcher of process 0 knows the run directory, and with it where a restart begins.
  const bool first = mine.front().process == 0;
  std::optional<LastingDirectory> lasting;
  if (first) lasting.emplace(run);
  const std::string into = lasting ? lasting->path() : "";
  const Descriptor config = HandedConfig(run.loaded.resolved_toml);
  const CheckpointConfig& checkpoints = run.config().checkpoint;
  std::ptrdiff_t ranks = 0;
  for (const PlannedProcess& process : mine) ranks += std::ssize(process.ranks);
  WarnOfRanks(run, ranks);
  if (first) WarnOfRemarks(run.loaded);
  if (arguments.restarts > 0 && !into.empty() && !checkpoints.periodic()) {
    PrintWarning(std::string("--restarts: there will be no checkpoint to resume from ") +
                 kNotPeriodic);
  }
  for (int attempt = 0;; ++attempt) {
    MemberArguments member = meet();
    member.config_descriptor = config.get();
    std::vector<ChildProcess> children;
    for (const PlannedProcess& process : mine) {
      ChildProcess child = ChildOf("node", arguments.work.config.path, member, plan, process);
      AddWorkWords(arguments.work, child.arguments);
      child.longest_stop = LongestStop(run.config().cluster);
      child.arguments.insert(child.arguments.end(), {"--attempt", std::to_string(attempt)});
      if (!into.empty()) child.arguments.insert(child.arguments.end(), {"--into", into});
      if (!arguments.start.empty()) {
        child.arguments.insert(child.arguments.end(), {"--start", arguments.start});
      }
      for (const std::string& name : arguments.accept) {
        child.arguments.insert(child.arguments.end(), {"--accept", name});
      }
      children.push_back(std::move(child));
    }
    const ChildrenEnd end = RunChildren(children, interrupt);
    if (attempt == arguments.restarts || interrupt.signal() != 0 || !MaySucceedAgain(end, into)) {
      return end.exit_code;
    }
    std::cerr << "troupe: restarting"
              << (into.empty() ? "" : " " + RestartPlace(into, arguments.start, checkpoints))
              << ", " << attempt + 1 << " of " << arguments.restarts << " times\n"
              << std::flush;
  }
}

int RunLocal(const RunSpec& run, Interrupt& interrupt) {
  const int local = run.arguments.local;
  const ProcessPlan plan = LocalPlan(run.config().cluster, local);
  const Descriptor key = NewKey();
  const auto meet = [&] { return LocalMember(key, local); };
  return RunMembers(run, plan, plan.processes(), meet, interrupt);
}

/// Runs the processes of one node, or this process again under a supervisor that restarts it.
int RunNodeChildren(const RunSpec& run, const ProcessPlan& plan, const NodeChoice& choice,
                    const Address& seed, Interrupt& interrupt) {
  const std::vector<PlannedProcess> mine = choice.launched_per == LaunchedPer::kNode
                                               ? plan.OfNode(choice.node)
                                               : std::vector{plan.Of(choice.node)};
  MemberArguments member = run.arguments.member;
  member.join = ToString(seed);
  const auto meet = [&] { return member; };
  return RunMembers(run, plan, mine, meet, interrupt);
}

int ExitCodeOf(int exit_code, const Interrupt& interrupt) {
  const bool interrupted = exit_code == kExitDone && interrupt.signal() != 0;
  return interrupted ? ExitCodeOfSignal(interrupt.signal()) : exit_code;
}

/// Throws if this machine lacks GPUs of a job of one process. Called before anything is made.
void RequireGpus(const ClusterConfig& cluster) {
  if (cluster.backend != Backend::kCuda) return;
  std::vector<int> ranks(static_cast<std::size_t>(cluster.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::string missing = MissingGpus(cluster, ranks, static_cast<int>(GpusHere().size()));
  if (!missing.empty()) throw std::runtime_error("cluster.backend = \"cuda\": " + missing);
}

/// Returns `run()`. If it throws, removes a run directory in which no step was finished.
int RunWithCleanup(Work& work, const std::function<int()>& run) {
  try {
    return run();
  } catch (...) {
    std::cerr << work.RemoveUnused() << std::flush;
    throw;
  }
}

int RunAlone(const RunSpec& run, Interrupt& interrupt) {
  const auto opened = OpenWork(run);
  Work& work = *opened;
  RequireGpus(run.config().cluster);
  return RunWithCleanup(work, [&] {
    work.OpenRunDirectory(run.arguments.into);
    WarnOfRanks(run, run.config().cluster.ranks);
    WarnOfRemarks(run.loaded);
    work.Warn();
    work.Announce();
    JobSetup setup = work.Setup(true);
    setup.interrupt = &interrupt;
    JobEnd end;
    end.failure = RunInProcess(setup);
    if (!end.failure.empty() && setup.after_failure) {
      end.advice = setup.after_failure(end.failure.kind);
    }
    return ExitCodeOf(work.Finish(end), interrupt);
  });
}

/// Returns whether `self`, which is not process 0, prints how to resume when process 0 is lost. The
/// launcher of process 0 does so itself; launchers on other nodes do not know the run directory.
bool AdvisesForFirst(const MemberArguments& member, const ProcessPlan& plan, ProcessId self) {
  if (self == 0 || member.local_processes > 0) return false;
  const int node = plan.Of(self).node;
  return !member.child() || (node != plan.Of(0).node && plan.OfNode(node).front().process == self);
}

/// Removes the signal handler at the end of its scope: the objects that it uses are destroyed next.
struct HandlerScope {
  Interrupt& interrupt;
  ~HandlerScope() { interrupt.OnSignal(nullptr); }
};

/// This process among the others of its job.
struct SelfInJob {
  const ProcessPlan& plan;
  ProcessId self;
  Address seed;  ///< where process 0 listens
};

int JoinAndRun(Work& work, const RunSpec& run, const SelfInJob& job, Interrupt& interrupt) {
  const auto& [plan, self, seed] = job;
  const ClusterArguments& arguments = run.arguments;
  const Config& config = run.config();
  const RunKey key = ReadKey(arguments.member);
  // A launcher counts the ranks of all its children together.
  if (!arguments.member.child()) WarnOfRanks(run, std::ssize(plan.Of(self).ranks));
  JoinOptions options = JoinOptionsOf(config, plan, self, seed, arguments.member);
  options.self.config += work.Task();
  options.self.build = VersionText();
  options.self.attempt = arguments.attempt;
  const HandlerScope handler{interrupt};
  interrupt.OnSignal([](int signal) {  // nothing to undo yet
    if (EndsJob(signal)) QuickExit(ExitCodeOfSignal(signal));
  });
  std::unique_ptr<TlsContext> tls;
  Joined joined;
  try {
    tls = TlsOf(config.cluster, seed, options.timeout);
    options.tls = tls.get();
    if (self == 0) {
      options.run_directory = work.OpenRunDirectory(arguments.into);
      if (!options.run_directory.empty()) {
        options.run_directory = std::filesystem::absolute(options.run_directory).string();
      }
      interrupt.OnSignal([&work](int signal) {  // only the run directory to undo
        if (!EndsJob(signal)) return;
        std::cerr << work.RemoveUnused();
        QuickExit(ExitCodeOfSignal(signal));
      });
      WarnOfRemarks(run.loaded);
      if (arguments.attempt == 0) work.Warn();
      work.Announce();
    }
    joined = Join(key, options);
  } catch (const JoinError& e) {
    PrintCause(e.what(), work.RemoveUnused());
    return kExitNotMet;
  }
  interrupt.OnSignal(nullptr);
  JobSetup setup = work.Setup(self == 0);
  const std::string& directory = joined.roster.run_directory;
  if (!directory.empty() && AdvisesForFirst(arguments.member, plan, self)) {
    setup.after_failure = [directory](FailureKind kind) {
      return AdviceAfterFailure(kind, directory);
    };
  }
  setup.interrupt = &interrupt;
  setup.quiet = arguments.member.child();
  if (self == 0) std::cout << ProcessTable(*run.plan, plan, &joined.roster) << '\n' << std::flush;
  Membership member{std::make_shared<const ProcessPlan>(plan), self, key, std::move(joined)};
  const JobEnd end = RunAmongProcesses(setup, std::move(member));
  const int exit_code =
      self == 0 ? work.Finish(end)
                : (end.failure.empty() ? static_cast<int>(kExitDone) : ReportFailure(end));
  if (!end.failure.empty()) {
    if (tls) tls->Flush(std::chrono::steady_clock::now() + std::chrono::milliseconds(200));
    QuickExit(exit_code);
  }
  return ExitCodeOf(exit_code, interrupt);
}

int RunAsMember(const RunSpec& run, const SelfInJob& job, Interrupt& interrupt) {
  const auto work = OpenWork(run);
  return RunWithCleanup(*work, [&] { return JoinAndRun(*work, run, job, interrupt); });
}

}  // namespace

int RunHere(const ClusterArguments& given) {
  RunSpec run = LoadRun(given, given.work.verify ? "verify" : "train");
  ResumeRun(run);
  const ClusterArguments& arguments = run.arguments;
  Interrupt interrupt;
  if (arguments.restarts > 0 && arguments.local == 0) {
    throw LaunchError("--restarts needs --local: a process cannot restart itself");
  }
  if (arguments.local > 1 || arguments.restarts > 0) {
    return ExitCodeOf(RunLocal(run, interrupt), interrupt);
  }
  const std::string& path = arguments.work.config.path;
  if (const auto task = TaskOfMany(ReadVariables()); task && arguments.local == 0) {
    throw LaunchError(*task +
                      ": this is one of several tasks, and `troupe train` and `troupe "
                      "verify` are whole jobs: run `troupe node " +
                      path + "` instead, or unset these variables");
  }
  const ProcessPlan plan(run.config().cluster);
  if (arguments.local == 0 && plan.num_nodes() > 1) {
    const std::string local = "here with --local " + std::to_string(plan.num_processes());
    throw LaunchError(
        path + " plans " + std::to_string(plan.num_nodes()) + " nodes (" + plan.Names() + "): " +
        (arguments.resume.empty() ? "run `troupe node " + path + "` on each, or try it " + local
                                  : "resume it " + local + ", or run `troupe node " + path +
                                        " --resume " + arguments.resume + "` on each"));
  }
  return RunAlone(run, interrupt);
}

int RunNodeOfJob(const ClusterArguments& given) {
  ClusterArguments settled = given;
  const Variables variables = SettleMember(settled.member);
  Interrupt interrupt;
  RunSpec run = LoadRun(std::move(settled), "node");
  const MemberArguments& member = run.arguments.member;
  const ProcessPlan plan = PlanOf(member, run.config().cluster);
  const NodeChoice choice = ChooseNode(variables, member.node, plan);
  if (plan.num_processes() == 1 || choice.node == 0) ResumeRun(run);
  if (plan.num_processes() == 1) return RunAlone(run, interrupt);
  const Address seed = ChooseJoin(variables, member.join, run.config().cluster).address;
  if (choice.launched_per == LaunchedPer::kNode ||
      (run.arguments.restarts > 0 && !member.child())) {
    static_cast<void>(ReadKey(member));
    return ExitCodeOf(RunNodeChildren(run, plan, choice, seed, interrupt), interrupt);
  }
  return RunAsMember(run, {plan, choice.node, seed}, interrupt);
}

}  // namespace troupe
