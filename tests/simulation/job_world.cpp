#include "tests/simulation/job_world.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "app/cause.hpp"
#include "app/cluster_run.hpp"
#include "app/exit_code.hpp"
#include "app/run_events.hpp"
#include "app/run_facts.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "tests/simulation/memory.hpp"
#include "tests/simulation/output.hpp"

extern "C" void __gcov_dump() __attribute__((weak));

namespace troupe::testing {
namespace {

constexpr std::uint32_t kNetwork = (10U << 24) | 1;  // 10.0.0.1

JobWorld* world = nullptr;

/// The time in which a launcher notices an end and starts a process, up to where its program begins.
constexpr SimTime kLeastStart = Ms(20);
constexpr SimTime kMostStart = Ms(600);

}  // namespace

JobWorld::JobWorld(const WorldJob& job, std::uint64_t seed)
    : job_(job), kernel_(seed), network_(kernel_) {
  world = this;
  for (int i = 0; i < job.num_processes + job.num_spares; ++i) {
    Place& place = places_.emplace_back();
    place.is_spare = i >= job.num_processes;
    place.machine = kernel_.AddMachine(kNetwork + static_cast<std::uint32_t>(i));
    network_.AddMachine(place.machine);
    place.child.place = static_cast<std::size_t>(i);
    place.child.name = place.is_spare ? "spare" : "n" + std::to_string(i);
    place.child.leads = i == 0;
  }
  kernel_.ended = [this](SimProcess* process) { Ended(process); };
}

SimProcess* JobWorld::ProcessOf(int place) {
  SimProcess* const process = places_.at(static_cast<std::size_t>(place)).process;
  return process != nullptr && process->is_alive ? process : nullptr;
}

void JobWorld::At(SimTime time, const std::string& text, std::function<void()> event) {
  faults_ +=
      (faults_.empty() ? "" : "; ") + text + " at " + std::to_string(time / 1'000'000) + " ms";
  kernel_.At(time, std::move(event));
}

void JobWorld::Kill(int place) {
  SimProcess* const process = ProcessOf(place);
  if (process != nullptr) kernel_.Kill(process);
}

void JobWorld::CutPath(int from, int to, bool cut) {
  cut ? network_.Cut(MachineOf(from), MachineOf(to))
      : network_.Mend(MachineOf(from), MachineOf(to));
}

void JobWorld::CutPaths(int place, bool cut) {
  for (const Place& other : places_) {
    const Machine* const machine = MachineOf(place);
    if (other.machine == machine) continue;
    cut ? network_.Cut(machine, other.machine) : network_.Mend(machine, other.machine);
    cut ? network_.Cut(other.machine, machine) : network_.Mend(other.machine, machine);
  }
}

void JobWorld::CutPower(int index, SimTime length) {
  if (!has_met_) return kernel_.After(Ms(20), [=, this] { CutPower(index, length); });
  Place& place = places_.at(static_cast<std::size_t>(index));
  CutPaths(index, true);
  place.dark_until = kernel_.now() + length;
  Kill(index);
  kernel_.At(place.dark_until, [this, index] {
    network_.Discard(MachineOf(index));
    CutPaths(index, false);
  });
}

void JobWorld::Remove(int index) {
  Place& place = places_.at(static_cast<std::size_t>(index));
  if (place.is_done) return;
  if (place.child.joined < 0) return kernel_.After(Ms(50), [this, index] { Remove(index); });
  place.is_removed = true;
  if (ProcessOf(index) == nullptr) place.is_done = true;
  CutPaths(index, true);
  Kill(index);
}

void JobWorld::DieAfter(int place, std::int64_t calls) {
  SimProcess* const process = ProcessOf(place);
  if (process != nullptr) process->dies_at = process->calls + calls;
}

void JobWorld::Stop(int place, SimTime length) {
  SimProcess* const process = ProcessOf(place);
  if (process != nullptr) process->stopped_until = kernel_.now() + length;
}

void JobWorld::FillDisk(SimTime length) {
  may_fail_ = true;
  kernel_.is_disk_full = true;
  kernel_.At(kernel_.now() + length, [this] { kernel_.is_disk_full = false; });
}

void JobWorld::Start(std::size_t index, std::int64_t generation) {
  Place& place = places_[index];
  ClusterArguments arguments;
  arguments.work.config.path = job_.config;
  arguments.member.spare = place.is_spare;
  if (!place.is_spare) {
    arguments.member.node = std::to_string(index) + "/" + std::to_string(job_.num_processes);
  }
  arguments.member.join = "10.0.0.1:7420";
  arguments.member.key_file = job_.key_file;
  arguments.member.launcher = kLauncherPid;
  arguments.restarts = job_.restarts;
  arguments.generation = generation;
  if (index == 0) arguments.into = job_.into;
  place.child.started = generation;
  place.child.joined = -1;
  place.child.reported = false;
  place.partial.clear();
  ++starts_;
  place.process = kernel_.Start(place.child.name, place.machine, [arguments] {
    try {
      return RunNodeOfJob(arguments);
    } catch (const std::exception& e) {
      PrintCause(e.what());
      return static_cast<int>(kExitBadInput);
    }
  });
}

void JobWorld::Ended(SimProcess* process) {
  network_.CloseAll(process);
  const auto found = std::ranges::find(places_, process, &Place::process);
  if (found == places_.end() || found->is_done) return;
  const auto index = static_cast<std::size_t>(found - places_.begin());
  Place& place = *found;
  LaunchedChild& child = place.child;
  const int code = process->exit_code < 0 ? static_cast<int>(kExitLost) : process->exit_code;
  if (code != kExitDone) ++lost_processes_;
  if (code == kExitDone || place.is_removed) {
    place.is_done = true;
    if (child.leads) NoteEnd();
    return;
  }
  const bool again = code == kExitLost && !child.reported && !place.is_spare &&
                     child.times < job_.restarts && child.next_generation() <= job_.restarts;
  if (!again) {
    place.is_done = true;
    // Who is started again too late cannot learn that the job is done. Nor can a spare that was not
    // connected then, or a process that was stopped or cut off for longer than process 0 stays.
    const bool may_miss_end = index > 0 && places_.front().is_done &&
                              (place.is_spare || child.joined < 0 || place.is_unreachable);
    if (may_fail_ && !may_miss_end) {
      has_failed_ = true;
      if (child.leads) NoteEnd();
    } else if (fault_.empty() && !may_miss_end) {
      fault_ = child.name + " ended with code " + std::to_string(code) + ": " + place.cause;
    }
    return;
  }
  ++child.times;
  const std::int64_t next = child.next_generation();
  const SimTime begin = std::max(kernel_.now(), place.dark_until) + kLeastStart +
                        kernel_.Draw(kMostStart - kLeastStart);
  kernel_.At(begin, [this, index, next] {
    if (!places_[index].is_removed) Start(index, next);
  });
}

void JobWorld::NoteEnd() {
  done_at_ = kernel_.now();
  const Machine* const first = MachineOf(0);
  for (Place& place : places_) {
    const bool is_stopped =
        place.process != nullptr && place.process->stopped_until > kernel_.now();
    place.is_unreachable =
        is_stopped || network_.IsCut(first, place.machine) || network_.IsCut(place.machine, first);
  }
}

void JobWorld::CountSteps() {
  kernel_.After(Ms(10), [this] { CountSteps(); });
  if (kernel_.num_changes() == std::exchange(num_changes_, kernel_.num_changes())) return;
  std::error_code absent;
  const std::uintmax_t bytes = std::filesystem::file_size(job_.into + "/metrics.jsonl", absent);
  if (!absent && bytes > metrics_bytes_) {
    const RunMetrics metrics = ReadMetrics(job_.into);
    const auto losses = metrics.find("loss");
    if (losses != metrics.end()) complete_ = std::max(complete_, losses->second.back().first);
  }
  if (!absent) metrics_bytes_ = bytes;
}

void JobWorld::NoteGeneration() {
  const std::vector<RunEvent> events = EventsOf(job_.into);
  if (events.size() == num_events_) return;
  num_events_ = events.size();
  const std::int64_t step = events.back().step;
  const bool was_reduced = std::exchange(is_reduced_, !events.back().layout.empty());
  if (is_reduced_) ++reduced_;
  if (was_reduced && !is_reduced_) ++whole_again_;
  lost_steps_ = std::max(lost_steps_, complete_ - step);
  complete_ = step;
  for (const FoundCheckpoint& checkpoint : AllCheckpoints(job_.into)) {
    if (!checkpoint.fault.empty() || checkpoint.step <= step || !fault_.empty()) continue;
    fault_ = "the job went on after step " + std::to_string(step) +
             ", though there is a checkpoint of step " + std::to_string(checkpoint.step);
  }
}

void JobWorld::Note(Place& place, const std::string& bytes) {
  place.partial += bytes;
  for (auto end = place.partial.find('\0'); end != std::string::npos;
       end = place.partial.find('\0')) {
    const LauncherRecord record = ReadLauncherRecord(place.partial.substr(0, end));
    place.partial.erase(0, end + 1);
    if (record.kind == LauncherRecord::Kind::kGeneration) {
      place.child.joined = record.generation;
      has_met_ = true;
      if (&place == &places_.front()) NoteGeneration();
    }
    if (record.kind != LauncherRecord::Kind::kCause || record.cause.empty()) continue;
    place.child.reported = true;
    place.cause = record.cause.text;
  }
}

bool TakesOutput(int descriptor, std::string_view bytes) {
  if (descriptor != kCausePipe) return false;
  const OutsideOfWorld outside;
  for (auto& place : world->places_) {
    if (place.process != nullptr && place.process->is_alive && place.process == Kernel::Running()) {
      world->Note(place, std::string(bytes));
    }
  }
  return true;
}

bool JobWorld::IsDone() const {
  return !fault_.empty() || std::ranges::all_of(places_, &Place::is_done);
}

WorldEnd JobWorld::Run(const std::function<void(JobWorld&)>& plan) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    kernel_.At(kernel_.Draw(kMostStart), [this, i] { Start(i, 0); });
  }
  plan(*this);
  num_events_ = EventsOf(job_.into).size();  // of a job that failed before
  CountSteps();
  const std::string stuck = kernel_.Run([this] { return IsDone(); }, job_.limit);
  WorldEnd end;
  end.fault = fault_.empty() ? stuck : fault_;
  end.digest = kernel_.digest();
  end.took = done_at_ < 0 ? kernel_.now() : done_at_;
  end.switches = kernel_.num_switches();
  end.starts = starts_;
  end.lost_processes = lost_processes_;
  end.lost_steps = lost_steps_;
  end.reduced = reduced_;
  end.whole_again = whole_again_;
  end.faults = faults_;
  end.has_failed = has_failed_;
  for (const Place& place : places_) {
    if (!place.cause.empty()) end.cause += (end.cause.empty() ? "" : "; ") + place.cause;
  }
  ReadLosses(end);
  return end;
}

void JobWorld::ReadLosses(WorldEnd& end) const {
  const RunMetrics metrics = ReadMetrics(job_.into);
  const auto losses = metrics.find("loss");
  if (losses == metrics.end()) return;
  std::int64_t next = 1;
  for (const auto& [step, loss] : losses->second) {
    if (step != next++ && end.fault.empty()) {
      end.fault = "metrics.jsonl has step " + std::to_string(step) + " in place of " +
                  std::to_string(next - 1);
    }
    end.losses.push_back(loss);
  }
}

// The way back from the process of a world.

namespace {

std::string Packed(const WorldEnd& end) {
  std::ostringstream text;
  text.precision(17);
  text << end.digest << ' ' << end.took << ' ' << end.switches << ' ' << end.starts << ' '
       << end.lost_processes << ' ' << end.lost_steps << ' ' << end.reduced << ' '
       << end.whole_again << ' ' << end.has_failed << ' ' << end.losses.size();
  for (const double loss : end.losses) text << ' ' << loss;
  text << '\n' << end.faults << '\n' << std::quoted(end.cause) << end.fault;
  return text.str();
}

WorldEnd Unpacked(const std::string& packed) {
  WorldEnd end;
  std::istringstream text(packed);
  std::size_t count = 0;
  text >> end.digest >> end.took >> end.switches >> end.starts >> end.lost_processes >>
      end.lost_steps >> end.reduced >> end.whole_again >> end.has_failed >> count;
  end.losses.resize(count);
  for (double& loss : end.losses) text >> loss;
  text.ignore();
  std::getline(text, end.faults);
  text >> std::quoted(end.cause);
  std::getline(text, end.fault, '\0');
  return end;
}

constexpr int kResult = 3;
constexpr int kFirstFree = 8;  ///< descriptor after those of a process that a launcher has started
constexpr unsigned int kSecondsOfWorld = 100;

/// Makes descriptors the same in all worlds. kResult is `result`.
void SettleDescriptors(int result) {
  const int nothing = open("/dev/null", O_RDWR);
  dup2(result, kResult);
  for (int descriptor = kResult + 1; descriptor < kFirstFree; ++descriptor) {
    dup2(nothing, descriptor);
  }
  if (std::getenv("TROUPE_WORLD_EVENTS") == nullptr) {
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
  }
  close_range(kFirstFree, ~0U, 0);
}

[[noreturn]] void RunAndReport(const std::function<WorldEnd()>& run) {
  const std::string packed = Packed(run());
  for (std::size_t written = 0; written < packed.size();) {
    const ssize_t count = write(kResult, packed.data() + written, packed.size() - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  if (__gcov_dump != nullptr) __gcov_dump();  // a build that counts the lines that run
  _exit(0);
}

/// Only one thread runs at a time, and the next one begins sooner on the same core.
void RunOnOneCore() {
  const int core = sched_getcpu();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (core >= 0) CPU_SET(static_cast<std::size_t>(core), &cores);
  if (core >= 0) sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace

WorldEnd InOwnProcess(const std::function<WorldEnd()>& run) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    alarm(kSecondsOfWorld);
    SettleDescriptors(ends[1]);
    RunOnOneCore();
    UseFreshMemory();
    RunAndReport(run);
  }
  close(ends[1]);
  std::string packed;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(ends[0], bytes, sizeof bytes)) > 0;) {
    packed.append(bytes, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || packed.empty()) {
    WorldEnd end;
    end.fault = "the world crashed, status " + std::to_string(status);
    return end;
  }
  return Unpacked(packed);
}

}  // namespace troupe::testing
