#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/node_id.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/connections.hpp"
#include "app/cause.hpp"
#include "app/exit_code.hpp"
#include "app/job_parts.hpp"
#include "app/member.hpp"
#include "app/preflight.hpp"
#include "app/run_directory.hpp"
#include "app/run_job.hpp"
#include "app/tensor_plane.hpp"
#include "cluster/latecomers.hpp"
#include "cluster/watch.hpp"
#include "feed/port.hpp"
#include "messages/system.hpp"
#include "modules/device/backend.hpp"
#include "transport/patient_plane.hpp"

namespace troupe {
namespace {

/// Delay before a failed connection is reported, so that the watch can report how its process was
/// lost.
constexpr std::chrono::milliseconds kPatience{500};

/// Time for the lines before the cause; the files that they need may be on the lost machine.
constexpr std::chrono::seconds kAdvice{2};

/// Time for the work of other threads when a process goes on after a failure.
constexpr std::chrono::seconds kThreadPatience{1};

/// Time between two checks whether the actors have ended.
constexpr std::chrono::milliseconds kEndPoll{1};

/// After this time a warning says that they have not.
constexpr std::chrono::seconds kLongEnd{10};

/// Whether the thread, if there is one, has no work, or none soon.
bool EndsSoon(const std::shared_ptr<TaskThread>& thread) {
  return thread == nullptr || thread->WaitFor(kThreadPatience);
}

/// Returns `advice()`, or "" if it throws or takes longer than kAdvice.
std::string InTime(std::function<std::string()> advice) {
  const auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> lines = answer->get_future();
  std::thread([answer, advice = std::move(advice)] {
    try {
      answer->set_value(advice());
    } catch (const std::exception&) {
      answer->set_value("");
    }
  }).detach();
  return lines.wait_for(kAdvice) == std::future_status::ready ? lines.get() : "";
}

/// Ends this process with `exit_code` unless `*done` is set within kUnwinding.
void ExitUnless(std::shared_ptr<std::atomic<bool>> done, int exit_code) {
  std::thread([done = std::move(done), exit_code] {
    std::this_thread::sleep_for(kUnwinding);
    if (!done->load()) QuickExit(exit_code);
  }).detach();
}

/// The transport settings, as the user wrote them.
std::string DescribeTransport(const TransportConfig& transport) {
  std::string text = "transport.ucx_tls = \"" + transport.ucx_tls + "\"";
  if (!transport.net_devices.empty()) text += ", net_devices = \"" + transport.net_devices + "\"";
  if (!transport.port_range.empty()) text += ", port_range = \"" + transport.port_range + "\"";
  return text;
}

/// The actor system and the objects that use it.
struct Parts {
  Parts(const std::shared_ptr<TensorStore>& tensors, ProcessId process)
      : config(tensors, true),
        system(Distinct(config, process)),
        own_threads(system.detached_actors()),
        self(std::in_place, system) {}

  /// Waits until the threads of all actors have ended. The thread of an actor ends when nothing refers
  /// to the actor, and a message refers to its sender. CAF 0.17.6 stops its broker without reading the
  /// messages that are left, and then waits for all threads: it could wait forever.
  ~Parts() {
    watchdog.reset();
    connections.reset();
    self.reset();
    auto warning = std::chrono::steady_clock::now() + kLongEnd;
    while (system.detached_actors() > own_threads) {
      std::this_thread::sleep_for(kEndPoll);
      if (std::chrono::steady_clock::now() < warning) continue;
      PrintWarning("the actors of this process have not ended yet; it waits for them");
      warning += kLongEnd;
    }
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  /// CAF derives a system's name from the machine's network cards and the process id, which may be
  /// equal in two containers. Every call of `local` takes the next of 256 names.
  static SystemConfig& Distinct(SystemConfig& config, ProcessId process) {
    for (int i = 0; i < process % 256; ++i) caf::node_id::default_data::local(config);
    return config;
  }

  SystemConfig config;
  caf::actor_system system;
  const std::size_t own_threads;  ///< of CAF's actors
  std::optional<caf::scoped_actor> self;
  std::unique_ptr<Connections> connections;
  std::unique_ptr<Watchdog> watchdog;
};

/// The run of one process among others.
class SpanningRun {
 public:
  SpanningRun(const JobSetup& setup, Membership membership)
      : setup_(setup),
        config_(setup.plan->config()),
        member_(std::move(membership)),
        abort_(std::make_shared<AbortSignal>()),
        tensors_(std::make_shared<TensorStore>(abort_)) {}

  JobEnd Run() {
    CheckResources(static_cast<int>(member_.processes->Of(member_.self).ranks.size()));
    OpenPlane();
    NodeConfig node = ConfigOfNode();
    StartWatch();
    WatchdogConfig watchdog = WatchdogOf(config_, node);
    watchdog.looking = [this, trace = node.trace, look = std::move(watchdog.looking)] {
      if (look) look();
      if (setup_.grows_with) LookForGrowth();
      Recorder* const recorder = trace && member_.self != 0 ? trace->recorder() : nullptr;
      if (recorder != nullptr) recorder->SetClockOffset(watch_->Last(0).clock_offset_ns);
    };
    watchdog.others = [this] { return Others(); };

    // After a failure threads of libraries may be stuck: then destroyed only if the process goes on.
    auto parts = std::make_unique<Parts>(tensors_, member_.self);
    caf::scoped_actor& self = *parts->self;
    const auto owned = std::make_shared<const Node>(parts->system.spawn(RunNode, std::move(node)));
    const Node& handle = *owned;
    node_ = owned;
    const auto guard = ReportAbort();
    const auto failed = [&] {
      JobEnd end = AfterFailure(*parts, handle);
      if (end.goes_on) parts->watchdog.reset();  // it uses this object
      // Work of other threads that goes on would answer to actors of this system.
      const bool is_quiet =
          end.goes_on && EndsSoon(setup_.writer) && EndsSoon(setup_.memory_writer);
      if (!is_quiet) static_cast<void>(parts.release());
      return end;
    };
    try {
      parts->connections = std::make_unique<Connections>(parts->system, handle);
      MeetNodes(*parts->connections, self, handle);
    } catch (const std::exception& e) {
      if (!abort_->raised()) std::this_thread::sleep_for(kPatience);
      abort_->Raise(e.what());  // the watch may have raised it first
      return failed();
    }
    if (member_.self == 0) {
      PrintTransports();
      watchdog.stalled = [handle](std::chrono::nanoseconds since) {
        caf::anon_send(handle, Stalled{since.count()});
      };
    }
    const auto directory = GuardDirectory(setup_.run_directory, abort_);
    parts->watchdog = std::make_unique<Watchdog>(std::move(watchdog));
    ListenToUser(setup_, handle);
    JobEnd end = Await(self, handle);
    if (setup_.feed != nullptr) setup_.feed->Forget();
    if (setup_.interrupt != nullptr) setup_.interrupt->OnSignal(nullptr);
    if (!end.failure.empty() && abort_->raised()) return failed();
    ended_->store(true);
    if (!end.failure.empty()) {
      static_cast<void>(parts.release());
      return end;
    }
    if (const auto& latecomers = member_.joined.latecomers) {
      if (end.num_silent > 0) latecomers->TellDone(end.num_silent, setup_.farewell);
      latecomers->Close(DoneProblem());
    }
    watch_->Leave();
    Close(*parts, handle);
    return end;
  }

  /// To be set when this object is destroyed.
  std::shared_ptr<std::atomic<bool>> destroyed() const { return destroyed_; }

 private:
  bool SeesRunDirectory() const {
    const std::string& directory = member_.joined.roster.run_directory;
    std::error_code refused;
    return directory.empty() || std::filesystem::exists(ResolvedFile(directory), refused);
  }
  const std::string& NameOf(ProcessId process) const { return member_.processes->Of(process).name; }

  /// Has a spare take the place of a slow process, if one waits.
  void Replace(ProcessId slow);
  NodeConfig ConfigOfNode();
  /// Asks for a checkpoint if spares have come, and the job can use more ranks.
  void LookForGrowth();
  /// After a checkpoint: ends this generation if they are still there.
  void Grow();
  void OpenPlane();
  void StartWatch();
  Vitals Others() const;
  void MeetNodes(Connections& connections, caf::scoped_actor& self, const Node& node);
  /// Process 0: tells feed machines where the other processes are.
  void TellMachines(const std::vector<std::string>& addresses) const;
  void PrintTransports() const;
  /// Ends everything that talks to other processes.
  void Close(Parts& parts, const Node& node);
  JobEnd AfterFailure(Parts& parts, const Node& node);

  /// Reports a failure immediately, in every process, and exits if the job does not end in time.
  std::shared_ptr<void> ReportAbort() {
    return abort_->Subscribe([this](const Failure& failure) {
      Report(failure);
      if (const auto& latecomers = member_.joined.latecomers) {
        latecomers->Close(line_ ? JoinProblem{} : JoinProblem{failure.text, JoinFault::kEnded});
      }
      ExitUnless(ended_, line_ ? static_cast<int>(kExitLost) : ExitCodeOf(failure.kind));
    });
  }
  /// Prints the failure once, and returns when it is printed. The job may end between the moment in
  /// which the signal is raised and its call of a subscriber: then the end prints it.
  void Report(const Failure& failure) {
    std::call_once(reported_, [&] {
      if (setup_.goes_on) line_ = setup_.goes_on(failure);
      if (line_) {
        const bool speaks = member_.self == 0 || (*first_gone_ && member_.self == 1);
        if (speaks) std::cerr << *line_ + "\n" << std::flush;
        return;
      }
      const FailureKind kind = failure.kind;
      const auto& advice = setup_.after_failure;
      // Process 0 prints how to resume; if it is lost, the others do.
      const bool advises =
          advice && (member_.self == 0 || (*first_gone_ && kind == FailureKind::kLost));
      PrintCause(failure, advises ? InTime([advice, kind] { return advice(kind); }) : "");
    });
  }

  const JobSetup& setup_;
  const Config& config_;
  Membership member_;
  std::shared_ptr<AbortSignal> abort_;
  std::shared_ptr<TensorStore> tensors_;
  std::shared_ptr<ActivityTable> actors_;
  std::shared_ptr<GroupWaits> waits_;
  std::shared_ptr<Plane> plane_;
  std::shared_ptr<PatientPlane> patient_;
  std::shared_ptr<DeviceTransport> gpus_;  ///< backend "cuda"; destroyed before the planes it wraps
  std::string gpus_line_;                  ///< how tensors on GPUs travel
  std::shared_ptr<DataPlane> front_;       ///< the outermost plane, used by all senders
  std::unique_ptr<Watch> watch_;
  /// Process 0 is lost, or suspected to be.
  std::shared_ptr<std::atomic<bool>> first_gone_ = std::make_shared<std::atomic<bool>>(false);
  std::weak_ptr<const Node> node_;
  /// From now on a process that leaves is not lost.
  std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> grows_ = false;
  int seen_spares_ = 0;  ///< on the watchdog's thread
  // On the Director's thread:
  bool is_replacing_ = false;
  std::set<ProcessId> warned_of_;  ///< that they cannot be replaced now
  std::once_flag reported_;
  std::optional<std::string> line_;  ///< of JobSetup::goes_on
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> destroyed_ = std::make_shared<std::atomic<bool>>(false);
};

void SpanningRun::Replace(ProcessId slow) {
  const auto& latecomers = member_.joined.latecomers;
  const auto node = node_.lock();
  if (is_replacing_ || !node) return;
  const bool has_spare = latecomers && latecomers->spares() > 0;
  if (slow == 0 || !has_spare) {
    if (!warned_of_.insert(slow).second) return;
    return PrintWarning(slow == 0 ? "process 0 of a job cannot be replaced while it runs"
                                  : "no spare waits to take the place of " + NameOf(slow));
  }
  is_replacing_ = true;
  caf::anon_send(*node, LeaveJob{slow});
}

NodeConfig SpanningRun::ConfigOfNode() {
  NodeConfig node = NodeOf(setup_, member_.processes, member_.self, front_, abort_, tensors_);
  actors_ = node.actors;
  waits_ = node.group_waits;
  node.tensor_address = plane_->address();
  node.disk = NameOf(SeesRunDirectory() ? 0 : member_.self);
  node.ending = [this] {
    *ending_ = true;
    plane_->Leave();
  };
  if (setup_.grows_with) {
    node.checkpoints.stored_between = [this] { Grow(); };
  }
  if (member_.self == 0 && setup_.may_replace) {
    node.replace = [this](ProcessId slow) { Replace(slow); };
  }
  node.leave = [this] {
    std::cerr << "troupe: " + NameOf(member_.self) + " is slow: it leaves its place to a spare\n"
              << std::flush;
    QuickExit(kExitReplaced);
  };
  return node;
}

void SpanningRun::LookForGrowth() {
  const auto& latecomers = member_.joined.latecomers;
  const int spares = latecomers ? latecomers->spares() : 0;
  if (spares == std::exchange(seen_spares_, spares)) return;
  grows_ = spares > 0 && setup_.grows_with(spares);
  const auto node = node_.lock();
  if (grows_ && node) caf::anon_send(*node, SaveSoon{});
}

void SpanningRun::Grow() {
  const bool stops = setup_.interrupt != nullptr && setup_.interrupt->signal() != 0;
  if (!grows_ || stops) return;
  abort_->Raise({"spares have come, and the job can use more ranks", FailureKind::kGrows});
}

void SpanningRun::OpenPlane() {
  PlaneSettings settings;
  settings.abort = abort_;
  settings.store = tensors_.get();
  if (config_.cluster.backend == Backend::kCuda) {
    gpus_ = MakeCudaTransport(config_, abort_);
    settings.to_host = gpus_->ToHost();
  }
  settings.peer_failed = [this](ProcessId process, const std::string& reason) {
    if (*ending_) return;
    if (process == 0) *first_gone_ = true;
    // The heartbeat of a killed process fails too, and its report has more detail.
    std::thread([abort = abort_, ending = ending_,
                 text = "lost " + NameOf(process) +
                        ": the connection of its tensors failed: " + reason] {
      std::this_thread::sleep_for(kPatience);
      if (!*ending) abort->Raise({text, FailureKind::kLost});
    }).detach();
  };
  try {
    plane_ =
        OpenTensorPlane(config_, member_.joined, member_.self, member_.key, std::move(settings));
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(std::string("tensors between processes: ") + e.what() + " (" +
                             DescribeTransport(config_.transport) +
                             "; run `troupe doctor` for details)");
  }
  patient_ = std::make_shared<PatientPlane>(*plane_, *plane_, abort_, kPatience);
  front_ = patient_;
  if (!gpus_) return tensors_->Attach(patient_.get(), patient_.get());
  gpus_line_ = gpus_->StandBefore(*patient_, *patient_, plane_->reads_device_memory());
  front_ = std::shared_ptr<DataPlane>(gpus_, &gpus_->plane());
  tensors_->Attach(&gpus_->carrier(), &gpus_->plane());
}

void SpanningRun::PrintTransports() const {
  if (member_.joined.peers.empty()) return;
  std::cout << "tensors between processes over "
            << DescribeTensorPlane(*plane_, member_.joined.roster, config_.transport) << "\n"
            << (gpus_line_.empty() ? "" : gpus_line_ + "\n") << '\n'
            << std::flush;
}

void SpanningRun::StartWatch() {
  std::vector<WatchedPeer> peers;
  for (Peer& peer : member_.joined.peers) {
    peers.push_back({peer.process, NameOf(peer.process), std::move(peer.heartbeat),
                     std::move(peer.heartbeat_wire)});
  }
  WatchOptions options;
  options.interval = Milliseconds(config_.cluster.heartbeat_ms * 1e-3);
  options.suspect_after = Milliseconds(config_.cluster.suspect_after_s);
  options.dead_after = Milliseconds(config_.cluster.dead_after_s);
  WatchEvents events;
  const auto warn = [this](ProcessId of, const std::string& line) {
    // One process prints it: process 0, or process 1 about process 0.
    if (*ending_ || member_.self != (of == 0 ? 1 : 0)) return;
    PrintWarning(line);
  };
  events.suspected = [this, warn](ProcessId of, const std::string& line) {
    if (of == 0) *first_gone_ = true;
    warn(of, line);
  };
  events.recovered = [this, warn](ProcessId of, const std::string& line) {
    if (of == 0) *first_gone_ = false;
    warn(of, line);
  };
  events.lost = [this](ProcessId process, Loss, const std::string& line) {
    if (*ending_) return;
    if (process == 0) *first_gone_ = true;
    if (const auto node = node_.lock()) caf::anon_send(*node, PeerLost{process});
    abort_->Raise({"lost " + line, FailureKind::kLost});
  };
  watch_ = std::make_unique<Watch>(
      std::move(peers), options, [this] { return VitalsOf(*actors_, waits_.get()); },
      std::move(events));
}

Vitals SpanningRun::Others() const {
  Vitals all;
  for (const Peer& peer : member_.joined.peers) {
    const Vitals vitals = watch_->Last(peer.process).vitals;
    all.actions += vitals.actions;
    all.busy = all.busy || vitals.busy;
  }
  return all;
}

/// Connects the actor systems of all processes, then their data planes.
void SpanningRun::MeetNodes(Connections& connections, caf::scoped_actor& self, const Node& node) {
  AwaitNodes await{.others = {}, .sees_run_directory = SeesRunDirectory()};
  for (Peer& peer : member_.joined.peers) {
    if (peer.process > member_.self) connections.Accept(std::move(peer.control));
  }
  const auto fail = [](const caf::error& reason) {
    throw std::runtime_error("the processes do not answer each other: " + FailureOf(reason).text);
  };
  for (Peer& peer : member_.joined.peers) {
    if (peer.process > member_.self) continue;
    await.others.push_back(caf::actor_cast<caf::actor>(
        connections.Connect(std::move(peer.control), kGreetingTime, *abort_)));
  }
  // The Node ends this wait when the job fails.
  self->request(node, 2 * kGreetingTime, await)
      .receive(
          [&](NodesKnown& known) {
            known.tensor_addresses[static_cast<std::size_t>(member_.self)] = plane_->address();
            plane_->Connect(std::move(known.tensor_addresses));
            TellMachines(known.feed_addresses);
          },
          fail);
}

void SpanningRun::TellMachines(const std::vector<std::string>& addresses) const {
  if (setup_.feed == nullptr || member_.self != 0) return;
  std::vector<Address> others;
  for (const std::string& address : addresses) others.push_back(ParseAddress(address));
  setup_.feed->Tell(std::move(others));
}

void SpanningRun::Close(Parts& parts, const Node& node) {
  (*parts.self)->send_exit(node, caf::exit_reason::user_shutdown);
  tensors_->Detach();
  plane_->Close();
}

JobEnd SpanningRun::AfterFailure(Parts& parts, const Node& node) {
  ended_->store(true);
  JobEnd end{.failure = abort_->failure(), .reported = true};  // what was printed decides the code
  Report(end.failure);
  end.goes_on = line_.has_value();
  if (!end.goes_on) return end;
  *ending_ = true;
  ExitUnless(destroyed_, kExitLost);
  watch_->Abandon();  // a peer that has not noticed the failure must
  Close(parts, node);
  return end;
}

}  // namespace

JobEnd RunAmongProcesses(const JobSetup& setup, Membership membership) {
  // Not destroyed after a failure that ends the process; see the header.
  auto* const run = new SpanningRun(setup, std::move(membership));
  JobEnd end = run->Run();
  const auto destroyed = run->destroyed();
  if (end.failure.empty() || end.goes_on) delete run;
  destroyed->store(true);
  return end;
}

}  // namespace troupe
