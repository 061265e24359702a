#include "cli/cluster_run.hpp"

#include <CLI/CLI.hpp>
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

#include "checkpoint/run_checkpoints.hpp"
#include "cli/cause.hpp"
#include "cli/describe.hpp"
#include "cli/find_run.hpp"
#include "cli/launcher.hpp"
#include "cli/meeting_options.hpp"
#include "cli/preflight.hpp"
#include "cli/restart.hpp"
#include "cli/resume_run.hpp"
#include "cli/run_directory.hpp"
#include "cluster/environment.hpp"
#include "cluster/join_address.hpp"
#include "modules/device/backend.hpp"

namespace troupe {
namespace {

/// The arguments that make a child do the same work.
void AddWorkWords(const WorkArguments& work, std::vector<std::string>& words) {
  for (const std::string& fault : work.faults) {
    words.push_back("--plant-fault");
    words.push_back(fault);
  }
  if (work.verify) {
    words.insert(words.end(), {"--verify", "--steps", std::to_string(work.steps)});
    if (!work.dtype.empty()) words.insert(words.end(), {"--dtype", work.dtype});
  }
}

/// The run directory of a job that may be restarted: named before its first process starts, and
/// removed with this object if none of them has finished a step.
class LastingDirectory {
 public:
  explicit LastingDirectory(const ClusterArguments& arguments) : path_(arguments.into) {
    if (arguments.restarts == 0 || arguments.work.verify) return;
    const LoadedConfig loaded =
        LoadConfig(arguments.work.config.path, arguments.work.config.overrides);
    const RunDirectory directory(loaded.config.run, loaded.resolved_toml, arguments.into);
    path_ = directory.path();
    is_new_ = directory.is_new();
  }
  ~LastingDirectory() {
    // To the output: the last line of what is wrong is the cause.
    if (is_new_ && RemoveUnused(path_)) {
      std::cout << "removed " << path_ << ": no step was finished\n" << std::flush;
    }
  }
  LastingDirectory(const LastingDirectory&) = delete;
  LastingDirectory& operator=(const LastingDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_new_ = false;
};

/// Of a training run: whether `ranks` ranks fit on the cores of this machine.
void WarnOfRanks(const ClusterArguments& arguments, const Config& config, int ranks) {
  if (!arguments.work.verify) WarnOfCores(config, ranks);
}

/// Whether another start may succeed. The launcher of process 0, which has the run directory, sets
/// a damaged checkpoint aside first; other launchers then wait for it.
bool MaySucceedAgain(const ChildrenEnd& end, const std::string& run_directory) {
  if (end.exit_code == kExitLost) return true;
  if (end.kind != FailureKind::kDamaged) return false;
  if (run_directory.empty()) return true;
  const auto line = SetAsideIfDamaged(run_directory);
  if (line) std::cerr << ("troupe: warning: " + *line + "\n") << std::flush;
  return line && NewestCheckpoint(run_directory);
}

/// Once they have met, the processes see a stopped one themselves, and say more of it.
std::chrono::milliseconds LongestStop(const ClusterConfig& cluster) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(cluster.dead_after_s * 1e3)) +
         std::chrono::seconds(2);
}

/// Children for `mine` of the plan's processes, until they succeed, fail for good, or have been
/// restarted as often as allowed. `meet` says what those of one attempt are told.
int RunMembers(const ClusterArguments& arguments, const ProcessPlan& plan,
               const std::vector<PlannedProcess>& mine,
               const std::function<MemberArguments()>& meet, Interrupt& interrupt) {
  // Where the first process is the run directory is known, and with it where a restart begins.
  std::optional<LastingDirectory> lasting;
  if (mine.front().process == 0) lasting.emplace(arguments);
  const std::string into = lasting ? lasting->path() : "";
  const ConfigArguments& config = arguments.work.config;
  const Config loaded = LoadConfig(config.path, config.overrides).config;
  const CheckpointConfig& checkpoints = loaded.checkpoint;
  int ranks = 0;
  for (const PlannedProcess& process : mine) ranks += static_cast<int>(process.ranks.size());
  WarnOfRanks(arguments, loaded, ranks);
  if (arguments.restarts > 0 && !into.empty() && !checkpoints.periodic()) {
    std::cerr << "warning: --restarts: there will be no checkpoint to resume from "
                 "(checkpoint.every and every_minutes are 0)\n"
              << std::flush;
  }
  for (int attempt = 0;; ++attempt) {
    const MemberArguments member = meet();
    std::vector<ChildProcess> children;
    for (const PlannedProcess& process : mine) {
      ChildProcess child = ChildOf("node", config, member, plan, process);
      AddWorkWords(arguments.work, child.arguments);
      child.longest_stop = LongestStop(loaded.cluster);
      child.arguments.insert(child.arguments.end(), {"--attempt", std::to_string(attempt)});
      if (!into.empty()) child.arguments.insert(child.arguments.end(), {"--into", into});
      children.push_back(std::move(child));
    }
    const ChildrenEnd end = RunChildren(children, interrupt);
    if (attempt == arguments.restarts || interrupt.signal() != 0 || !MaySucceedAgain(end, into)) {
      return end.exit_code;
    }
    std::cerr << "troupe: restarting" << (into.empty() ? "" : " " + RestartPlace(into, checkpoints))
              << ", " << attempt + 1 << " of " << arguments.restarts << " times\n"
              << std::flush;
  }
}

int RunLocal(const ClusterArguments& arguments, Interrupt& interrupt) {
  const LoadedConfig loaded =
      LoadConfig(arguments.work.config.path, arguments.work.config.overrides);
  const ProcessPlan plan = LocalPlan(loaded.config.cluster, arguments.local);
  const Meeting meeting;
  const auto meet = [&] { return LocalMember(meeting, arguments.local); };
  return RunMembers(arguments, plan, plan.processes(), meet, interrupt);
}

/// The processes of one node, or this process again under a supervisor that restarts it.
int RunNodeChildren(const ClusterArguments& arguments, const ProcessPlan& plan,
                    const NodeChoice& choice, const Address& seed, Interrupt& interrupt) {
  const std::vector<PlannedProcess> mine =
      choice.launched_per == LaunchedPer::kNode
          ? plan.OfNode(choice.node)
          : std::vector{plan.processes()[static_cast<std::size_t>(choice.node)]};
  MemberArguments member = arguments.member;
  member.join = ToString(seed);
  const auto meet = [&] { return member; };
  return RunMembers(arguments, plan, mine, meet, interrupt);
}

int ExitCodeOf(int exit_code, const Interrupt& interrupt) {
  return exit_code == kExitDone && interrupt.signal() != 0 ? 128 + interrupt.signal() : exit_code;
}

/// Before anything is made for a job of one process.
void RequireGpus(const JobPlan& plan) {
  const ClusterConfig& cluster = plan.config().cluster;
  if (cluster.backend != Backend::kCuda) return;
  std::vector<int> ranks(static_cast<std::size_t>(cluster.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::string missing = MissingGpus(cluster, ranks, static_cast<int>(GpusHere().size()));
  if (!missing.empty()) throw std::runtime_error("cluster.backend = \"cuda\": " + missing);
}

/// What `run` returns. Where it throws, no run directory is left in which no step was finished.
int Tidily(Work& work, const std::function<int()>& run) {
  try {
    return run();
  } catch (...) {
    std::cerr << work.RemoveUnused() << std::flush;
    throw;
  }
}

int RunAlone(Work& work, const ClusterArguments& arguments, Interrupt& interrupt) {
  RequireGpus(work.plan());
  return Tidily(work, [&] {
    work.OpenRunDirectory(arguments.into);
    WarnOfRanks(arguments, work.plan().config(), work.plan().config().cluster.ranks);
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

int RanksOf(const ProcessPlan& plan, ProcessId self) {
  return static_cast<int>(plan.processes()[static_cast<std::size_t>(self)].ranks.size());
}

/// Whether `self`, which is not process 0, tells its user how to go on when that is lost. A launcher
/// that has started process 0 does so itself; one on another node does not know where the run is.
bool SpeaksForFirst(const MemberArguments& member, const ProcessPlan& plan, ProcessId self) {
  if (self == 0 || member.local_processes > 0) return false;
  const PlannedProcess& mine = plan.processes()[static_cast<std::size_t>(self)];
  return !member.child() || (mine.node != plan.processes().front().node &&
                             plan.OfNode(mine.node).front().process == self);
}

/// Ends the reports of signals where it ends: what they refer to is destroyed next.
struct Deaf {
  Interrupt& interrupt;
  ~Deaf() { interrupt.OnSignal(nullptr); }
};

int JoinAndRun(Work& work, const ClusterArguments& arguments, const ProcessPlan& plan,
               ProcessId self, const Address& seed, Interrupt& interrupt) {
  const Config& config = work.plan().config();
  const RunKey key = ReadKey(arguments.member);
  // Those that a launcher has started it has counted together.
  if (!arguments.member.child()) WarnOfRanks(arguments, config, RanksOf(plan, self));
  JoinOptions options = JoinOptionsOf(config, plan, self, seed, arguments.member);
  options.self.config += work.Task();
  options.self.build = VersionText();
  options.self.attempt = arguments.attempt;
  const Deaf at_end{interrupt};
  interrupt.OnSignal([](int signal) {  // nothing has begun yet
    if (signal != SIGUSR1) QuickExit(128 + signal);
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
      interrupt.OnSignal([&work](int signal) {  // still nothing, but there is a directory
        if (signal == SIGUSR1) return;
        std::cerr << work.RemoveUnused();
        QuickExit(128 + signal);
      });
      work.Announce();
    }
    joined = Join(key, options);
  } catch (const JoinError& e) {
    PrintCause(e.what(), work.RemoveUnused());
    return kExitNotMet;
  }
  interrupt.OnSignal(nullptr);
  JobSetup setup = work.Setup(self == 0);
  if (self != 0) setup.rounds = nullptr;
  const std::string& directory = joined.roster.run_directory;
  if (!directory.empty() && SpeaksForFirst(arguments.member, plan, self)) {
    setup.after_failure = [directory](FailureKind kind) {
      return AdviceAfterFailure(kind, directory);
    };
  }
  setup.interrupt = &interrupt;
  setup.quiet = arguments.member.child();
  if (self == 0) std::cout << ProcessTable(work.plan(), plan, &joined.roster) << '\n' << std::flush;
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

int RunAsMember(Work& work, const ClusterArguments& arguments, const ProcessPlan& plan,
                ProcessId self, const Address& seed, Interrupt& interrupt) {
  return Tidily(work, [&] { return JoinAndRun(work, arguments, plan, self, seed, interrupt); });
}

}  // namespace

void AddLocalArguments(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--local", arguments.local,
                 "run in K processes of this machine instead of one: a cluster to try things on")
      ->type_name("K")
      ->check(CLI::Range(1, 256));
}

void AddResumeArgument(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--resume", arguments.resume,
                 "resume this run after its newest checkpoint, in its directory; runs/latest and\n"
                 "NAME for the newest runs/NAME-TIME will do. Without CONFIG with the run's own.\n"
                 "What is trained and how it is cut must be the same, where and how fast it runs\n"
                 "may differ, and with --set the optimizer (docs/cli.md)")
      ->type_name("RUN_DIRECTORY")
      ->transform(FindRun)
      ->check([](const std::string& path) {
        return path.empty() ? std::string("expected a run directory, got \"\"") : std::string();
      });
}

void AddVerifyArguments(CLI::App& app, WorkArguments& arguments) {
  app.add_option("--steps", arguments.steps, "verify: training steps to compare")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--dtype", arguments.dtype,
                 "verify: precision of both sides; float64 leaves rounding no room to hide a fault")
      ->check(CLI::IsMember({"float32", "float64", "bfloat16"}));
}

int RunHere(const ClusterArguments& given) {
  ClusterArguments arguments = given;
  SettleConfig(arguments, arguments.work.verify ? "verify" : "train");
  ResumeRun(arguments);
  Interrupt interrupt;
  if (arguments.restarts > 0 && arguments.local == 0) {
    throw LaunchError("--restarts needs --local: a process cannot restart itself");
  }
  if (arguments.local > 1 || arguments.restarts > 0) {
    return ExitCodeOf(RunLocal(arguments, interrupt), interrupt);
  }
  if (const auto task = TaskOfMany(ReadVariables()); task && arguments.local == 0) {
    throw LaunchError(*task +
                      ": this is one of several tasks, and `troupe train` and `troupe "
                      "verify` are whole jobs: run `troupe node " +
                      arguments.work.config.path + "` instead, or unset these variables");
  }
  const auto work = OpenWork(arguments.work);
  const ProcessPlan plan(work->plan().config().cluster);
  if (arguments.local == 0 && plan.num_nodes() > 1) {
    const std::string& path = arguments.work.config.path;
    const std::string local = "here with --local " + std::to_string(plan.num_processes());
    throw LaunchError(
        path + " plans " + std::to_string(plan.num_nodes()) + " nodes (" + plan.Names() + "): " +
        (arguments.resume.empty() ? "run `troupe node " + path + "` on each, or try it " + local
                                  : "resume it " + local + ", or run `troupe node " + path +
                                        " --resume " + arguments.resume + "` on each"));
  }
  return RunAlone(*work, arguments, interrupt);
}

int RunNodeOfJob(const ClusterArguments& given) {
  ClusterArguments arguments = given;
  SettleConfig(arguments, "node");
  MemberArguments& member = arguments.member;
  const Variables variables = SettleMember(member);
  Interrupt interrupt;
  const LoadedConfig loaded =
      LoadConfig(arguments.work.config.path, arguments.work.config.overrides);
  const ProcessPlan plan = PlanOf(member, loaded.config.cluster);
  const NodeChoice choice = ChooseNode(variables, member.node, plan);
  if (plan.num_processes() == 1) {
    ResumeRun(arguments);
    const auto work = OpenWork(arguments.work);
    return RunAlone(*work, arguments, interrupt);
  }
  if (choice.node == 0) ResumeRun(arguments);
  const Address seed = ChooseJoin(variables, member.join, loaded.config.cluster).address;
  if (choice.launched_per == LaunchedPer::kNode || (arguments.restarts > 0 && !member.child())) {
    static_cast<void>(ReadKey(member));
    return ExitCodeOf(RunNodeChildren(arguments, plan, choice, seed, interrupt), interrupt);
  }
  const auto work = OpenWork(arguments.work);
  return RunAsMember(*work, arguments, plan, choice.node, seed, interrupt);
}

}  // namespace troupe
