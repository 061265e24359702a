#include "app/cluster_run.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/cause.hpp"
#include "app/exit_code.hpp"
#include "app/feed.hpp"
#include "app/generations.hpp"
#include "app/handed_config.hpp"
#include "app/launcher.hpp"
#include "app/member.hpp"
#include "app/preflight.hpp"
#include "app/resume.hpp"
#include "app/run_directory.hpp"
#include "app/run_spec.hpp"
#include "cluster/environment.hpp"
#include "cluster/join_address.hpp"
#include "cluster/spare.hpp"
#include "configs/schema.hpp"
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

/// Longer than processes that have met take to find a stopped one, since they report more about it.
std::chrono::milliseconds LongestStop(const ClusterConfig& cluster) {
  return Milliseconds(cluster.dead_after_s) + std::chrono::seconds(2);
}

/// Runs children for `mine` of the plan's processes, which meet by the arguments `member`, until they
/// succeed or fail for good. A lost one is started again, up to `restarts` times in all.
int RunMembers(const RunSpec& run, const ProcessPlan& plan, const std::vector<PlannedProcess>& mine,
               MemberArguments member, Interrupt& interrupt) {
  const ClusterArguments& arguments = run.arguments;
  // Only the launcher of process 0 knows the run directory.
  const bool first = mine.front().process == 0;
  std::optional<LastingDirectory> lasting;
  if (first) lasting.emplace(run);
  const std::string into = lasting ? lasting->path() : "";
  const Descriptor config = HandedConfig(run.loaded.resolved_toml);
  member.config_descriptor = config.get();
  std::ptrdiff_t ranks = 0;
  for (const PlannedProcess& process : mine) ranks += std::ssize(process.ranks);
  WarnOfRanks(run, ranks);
  if (first) WarnOfRemarks(run.loaded);
  if (arguments.restarts > 0 && !into.empty() && !run.config().checkpoint.periodic() &&
      run.config().checkpoint.replicas == 0) {
    PrintWarning(std::string("--restarts: there will be no checkpoint to resume from ") +
                 kNotPeriodic);
  }
  std::vector<ChildProcess> children;
  for (const PlannedProcess& process : mine) {
    ChildProcess child = ChildOf("node", arguments.work.config.path, member, plan, process);
    AddWorkWords(arguments.work, child.arguments);
    child.longest_stop = LongestStop(run.config().cluster);
    child.leads = process.process == 0;
    if (child.leads) child.generation = arguments.generation;
    const auto add = [&child](const std::string& name, const std::string& value) {
      if (!value.empty()) child.arguments.insert(child.arguments.end(), {name, value});
    };
    add("--restarts", std::to_string(arguments.restarts));
    add("--into", into);
    add("--start", arguments.start);
    for (const std::string& name : arguments.accept) add("--accept", name);
    children.push_back(std::move(child));
  }
  return RunChildren(children, interrupt, arguments.restarts);
}

int RunLocal(const RunSpec& run, Interrupt& interrupt) {
  const int local = run.arguments.local;
  const ProcessPlan plan = LocalPlan(run.config().cluster, local);
  const Descriptor key =
      TakesFeed(run.config()) ? ReadKey(run.arguments.member).ToDescriptor() : NewKey();
  return RunMembers(run, plan, plan.processes(), LocalMember(key, local), interrupt);
}

/// Opens the work. That may take long if files must be indexed, and there is nothing to undo: a signal ends the
/// process. The next generation of a job that has begun ends in order instead.
std::unique_ptr<Work> OpenWork(const RunSpec& run, Interrupt& interrupt) {
  const bool has_begun = run.arguments.generation > 0;
  if (!has_begun) {
    interrupt.OnSignal([](int signal) {
      if (EndsJob(signal)) QuickExit(ExitCodeOfSignal(signal));
    });
  }
  std::unique_ptr<Work> work = OpenWork(run);
  interrupt.OnSignal(nullptr);
  return work;
}

/// Runs the processes of one node, or this process again under a supervisor that restarts it.
int RunNodeChildren(const RunSpec& run, const ProcessPlan& plan, const NodeChoice& choice,
                    const Address& seed, Interrupt& interrupt) {
  const std::vector<PlannedProcess> mine = choice.launched_per == LaunchedPer::kNode
                                               ? plan.OfNode(choice.node)
                                               : std::vector{plan.Of(choice.node)};
  MemberArguments member = run.arguments.member;
  member.join = ToString(seed);
  return RunMembers(run, plan, mine, std::move(member), interrupt);
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
  const auto opened = OpenWork(run, interrupt);
  Work& work = *opened;
  RequireGpus(run.config().cluster);
  const auto feed = OpenFeed(
      run, work, [&run] { return ReadKey(run.arguments.member); }, "");
  return RunWithCleanup(work, [&] {
    std::string into = run.arguments.into;
    for (std::int64_t generation = run.arguments.generation;; ++generation) {
      into = work.OpenRunDirectory(into);
      if (generation == run.arguments.generation) {
        WarnOfRanks(run, run.config().cluster.ranks);
        WarnOfRemarks(run.loaded);
        WarnOfMirrors(run.config().checkpoint, run.arguments.restarts, 1);
        work.Warn();
      }
      work.Announce();
      JobSetup setup = work.Setup(true);
      setup.interrupt = &interrupt;
      if (feed) setup.feed = &feed->port();
      JobEnd end;
      end.failure = RunInProcess(setup);
      if (!end.failure.empty()) {
        const FailureKind kind = end.failure.kind;
        const auto line = GoingOnLine(end.failure, generation, run, interrupt);
        if (line && HasSoundCheckpoint(kind, into)) {
          std::cerr << *line + "\n" << std::flush;
          continue;
        }
        if (setup.after_failure) end.advice = setup.after_failure(kind);
      }
      if (feed) feed->End(end.failure, interrupt.signal() != 0);
      const int exit_code = ExitCodeOf(work.Finish(end), interrupt);
      // Threads of the failed job may still write, and exit() would take their libraries away.
      if (!end.failure.empty()) QuickExit(exit_code);
      return exit_code;
    }
  });
}

/// Waits for the place of a lost process. Returns nullopt if the job has ended without it. Throws
/// JoinError.
/// `former`: the place that this process had before, or kSpareProcess.
std::optional<TakePlace> AwaitPlaceIn(const Work& work, const RunSpec& run, const SelfInJob& job,
                                      ProcessId former) {
  const auto tls =
      TlsOf(run.config().cluster, job.seed, Milliseconds(run.config().cluster.join_timeout_s));
  JoinOptions options = MemberOptions(work, run, job);
  options.self.process = kSpareProcess;
  options.self.former = former;
  options.self.name = "the spare";
  options.tls = tls.get();
  try {
    return AwaitPlace(ReadKey(run.arguments.member), options);
  } catch (const JoinError& e) {
    if (e.fault != JoinFault::kDone) throw;
    std::cout << "the job ended without this spare: " << e.what() << '\n' << std::flush;
    return std::nullopt;
  }
}

void PrintTaken(const PlaceTaken& taken) {
  std::cerr << std::string("waiting as a spare: ") + taken.what() + "\n" << std::flush;
}

/// Waits for the place of a lost process, then runs as that one. If another process is faster, it waits
/// again. Process 0 listens at `seed`. This process took `start` until it could join, and had the place
/// `former`, or kSpareProcess.
int RunAsSpare(Work& work, RunSpec run, const ProcessPlan& plan, const Address& seed,
               std::chrono::nanoseconds start, ProcessId former, Interrupt& interrupt) {
  const auto self = [&](ProcessId process) {
    return SelfInJob{plan, process, seed, std::chrono::steady_clock::now() - start};
  };
  for (;;) {
    interrupt.OnSignal([](int signal) {
      if (EndsJob(signal)) QuickExit(ExitCodeOfSignal(signal));
    });
    std::optional<TakePlace> place;
    try {
      place = AwaitPlaceIn(work, run, self(plan.num_processes() - 1), former);
    } catch (const JoinError& e) {
      const bool has_failed = e.fault == JoinFault::kEnded;
      PrintCause((has_failed ? "the job ended without this spare: " : "") + std::string(e.what()));
      return has_failed ? kExitFailed : kExitNotMet;
    }
    if (!place) return kExitDone;
    run.arguments.generation = place->generation;
    std::cerr << "the spare takes the place of " + plan.Of(place->process).name + "\n"
              << std::flush;
    try {
      const SelfInJob taken = self(place->process);
      return ExitCodeOf(RunGenerations(work, run, taken, interrupt), interrupt);
    } catch (const PlaceTaken& e) {
      PrintTaken(e);
      former = place->process;
    }
  }
}

/// The arguments of a process that has lost its place. It stays on its machine.
RunSpec AsSpare(RunSpec run, const SelfInJob& job) {
  MemberArguments& member = run.arguments.member;
  const auto node = static_cast<std::size_t>(job.plan.Of(job.self).node);
  const auto& nodes = run.config().cluster.nodes;
  if (member.address.empty() && !member.spare && node < nodes.size()) {
    member.address = nodes[node].address;
  }
  member.spare = true;
  return run;
}

/// If another process has taken this one's place, it waits as a spare.
int RunAsMember(Work& work, const RunSpec& run, const SelfInJob& job, Interrupt& interrupt) {
  const auto start = std::chrono::steady_clock::now() - job.began;
  return RunWithCleanup(work, [&] {
    try {
      return ExitCodeOf(RunGenerations(work, run, job, interrupt), interrupt);
    } catch (const PlaceTaken& e) {
      PrintTaken(e);
      return RunAsSpare(work, AsSpare(run, job), job.plan, job.seed, start, job.self, interrupt);
    }
  });
}

/// Without a key no feed machine can take part: then the job lets none connect.
void SettleFeed(RunSpec& run) {
  if (!TakesFeed(run.config()) || !run.arguments.member.key_file.empty()) return;
  if (!run.arguments.work.verify) {
    PrintWarning("data.feed_address has no effect without --key-file RUN_KEY");
  }
  run.loaded.config.data.feed_address.clear();
  run.loaded.resolved_toml = ResolvedToml(run.loaded.config);
}

}  // namespace

int RunHere(const ClusterArguments& given) {
  RunSpec run = LoadRun(given, given.work.verify ? "verify" : "train");
  ResumeRun(run);
  SettleFeed(run);
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
  const auto began = std::chrono::steady_clock::now();
  ClusterArguments settled = given;
  const Variables variables = SettleMember(settled.member, settled.restarts > 0);
  Interrupt interrupt;
  RunSpec run = LoadRun(std::move(settled), "node");
  const MemberArguments& member = run.arguments.member;
  const ProcessPlan plan = PlanOf(member, run.config().cluster);
  if (member.spare) {
    if (run.arguments.restarts == 0 || plan.num_processes() == 1) {
      throw LaunchError(
          "--spare: only a job of several processes goes on after a loss, with --restarts");
    }
    const Address seed = ChooseJoin(variables, member.join, run.config().cluster).address;
    const auto work = OpenWork(run, interrupt);
    const auto start = std::chrono::steady_clock::now() - began;
    return RunAsSpare(*work, run, plan, seed, start, kSpareProcess, interrupt);
  }
  const NodeChoice choice = ChooseNode(variables, member.node, plan);
  if (plan.num_processes() == 1) {
    ResumeRun(run);
    return RunAlone(run, interrupt);
  }
  if (choice.node == 0) ResumeAsFirst(run);
  const Address seed = ChooseJoin(variables, member.join, run.config().cluster).address;
  if (choice.launched_per == LaunchedPer::kNode ||
      (run.arguments.restarts > 0 && !member.child())) {
    static_cast<void>(ReadKey(member));
    return ExitCodeOf(RunNodeChildren(run, plan, choice, seed, interrupt), interrupt);
  }
  return RunAsMember(*OpenWork(run, interrupt), run, {plan, choice.node, seed, began}, interrupt);
}

}  // namespace troupe
