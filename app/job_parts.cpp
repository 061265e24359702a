#include "app/job_parts.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <utility>

#include "app/cause.hpp"
#include "app/exit_code.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/sharded.hpp"
#include "checkpoint/weights_folder.hpp"
#include "feed/port.hpp"
#include "files/usable_cores.hpp"
#include "messages/system.hpp"
#include "modules/device/backend.hpp"
#include "modules/groups.hpp"
#include "modules/synthetic/synthetic_program.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/programs.hpp"
#include "trace/mapped_memory.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kLook{200};
constexpr int kLooksPerAnswer = 5;
/// A file server may miss a directory for a moment.
constexpr int kMissesToBelieve = 2;

struct Identity {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Identity&) const = default;
};

/// Returns nothing if there is no such directory, and `last` if the system reports another error.
std::optional<Identity> IdentityOf(const std::string& directory, const Identity& last) {
  struct stat found {};
  if (stat(directory.c_str(), &found) == 0) return Identity{found.st_dev, found.st_ino};
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  return last;
}

void WatchDirectory(const std::string& directory, const std::weak_ptr<AbortSignal>& abort,
                    const std::atomic<bool>& ended) {
  const auto first = IdentityOf(directory, {});
  if (!first) return;
  int misses = 0;
  for (int look = 1; !ended; ++look) {
    std::this_thread::sleep_for(kLook);
    if (look % kLooksPerAnswer != 0) continue;
    misses = IdentityOf(directory, *first) == first ? 0 : misses + 1;
    if (misses < kMissesToBelieve || ended) continue;
    if (const auto signal = abort.lock()) {
      signal->Raise(directory +
                    ": the run directory was deleted or moved during the run; nothing more of it "
                    "can be saved");
    }
    return;
  }
}

/// One that runs and one queued after it, so that no GPU waits for a decision.
constexpr std::size_t kQueuedPasses = 2;

/// Places the programs of a rank on the rank's device.
TorchOptions OptionsOf(const ClusterConfig& cluster, int rank) {
  return {.device = cluster.backend == Backend::kCuda ? GpuOf(cluster, rank) : Buffer::kHost};
}

ProgramFactory MakePrograms(const Config& config, std::shared_ptr<GroupTable> groups) {
  auto torch = MakeTorchPrograms(config, groups, [cluster = config.cluster](const auto& shard) {
    return OptionsOf(cluster, shard.rank);
  });
  auto synthetic = MakeSyntheticPrograms(config, [groups](const ShardAddress& shard) {
    return std::shared_ptr<Communicator>(groups->Take(shard).others.data);
  });
  return [config, torch, synthetic](const ShardAddress& shard) {
    const bool computes = config.Find(shard.module)->model->computes();
    return computes ? torch(shard) : synthetic(shard);
  };
}

/// Programs that begin with the tensors of the folders that their modules name, except those that
/// `resume` has.
ProgramFactory WithWeights(const Config& config, const LoadOrder& resume, ProgramFactory make) {
  return [config, resume, make = std::move(make)](const ShardAddress& shard) {
    auto program = make(shard);
    const std::vector<TensorPiece> all = program->Tensors(TensorKind::kParameter);
    std::vector<TensorPiece> read = all;
    const auto in_checkpoint = [&](const TensorPiece& piece) {
      return !piece.in_folder &&
             std::ranges::find(resume.fresh, PartNameOf(piece.name)) == resume.fresh.end();
    };
    if (!resume.folder.empty()) std::erase_if(read, in_checkpoint);
    ReadWeights(config, read);
    program->SetTensors(TensorKind::kParameter, all);
    return program;
  };
}

/// Puts a shard's file into the memory of this process.
StoredShard Hold(HeldFiles& held, const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
                 const SaveOrder& order) {
  if (pieces.empty()) return {};
  MadeShard made = MakeShard(pieces, shard, order,
                             [&held](std::size_t num_bytes) { return held.Allocate(num_bytes); });
  held.Put(order.folder, std::move(made.file));
  return std::move(made.stored);
}

/// How the shards of process `name` are stored: on its disk and in its memory.
ShardStorage StorageOf(const JobSetup& setup, const CheckpointConfig& config,
                       const std::string& name, const std::shared_ptr<AbortSignal>& abort) {
  const auto save = [name, held = setup.held](const std::vector<StoredPiece>& pieces,
                                              const ShardAddress& shard, const SaveOrder& order) {
    StoredShard stored =
        order.in_memory ? Hold(*held, pieces, shard, order) : WriteShard(pieces, shard, order);
    stored.process = name;
    return stored;
  };
  const auto publish = [keep = config.keep, keep_every = config.keep_every, abort,
                        publishing = setup.publishing](const PublishManifest& manifest,
                                                       const std::string& disk) {
    std::unique_lock<std::timed_mutex> alone;
    if (publishing) alone = std::unique_lock(*publishing);
    // The next generation of the job may go on from a checkpoint that would be removed.
    if (abort->raised()) throw std::runtime_error(abort->failure().text);
    PublishCheckpoint(manifest.folder, manifest.text, disk);
    const std::string run = RunOf(manifest.folder);
    if (manifest.steps.empty()) return RemoveOldCheckpoints(run, keep, keep_every);
    KeepCheckpoints(run, manifest.steps);
  };
  const auto load = [held = setup.held](StageProgram& program, const ShardAddress& shard,
                                        const LoadOrder& order, const OpenElsewhere& elsewhere) {
    // What the last generation began is never complete.
    if (held) held->KeepOnly(order.folder);
    return ReadShard(program, shard, order, elsewhere);
  };
  return {save, load, publish};
}

/// Makes ranks create their queue and their groups before their programs.
void UseGpus(NodeConfig& node, const ClusterConfig& cluster,
             const std::shared_ptr<DeviceBackend>& backend,
             const std::shared_ptr<GroupTable>& groups) {
  node.gpu_of = [cluster](int rank) { return GpuOf(cluster, rank); };
  node.tensors->AllocateOnDevices(
      [backend, memory = backend->memory()](Shape shape, DType dtype, int device) {
        return memory(std::move(shape), dtype, device);
      });
  const DeviceGroupMaker make = [backend](int rank, auto host, const GroupNames& names,
                                          std::optional<Lane> lane) {
    return backend->MakeGroup(rank, std::move(host), names, lane);
  };
  node.make_group = make;
  node.make_queue = [backend, groups, make](int rank) {
    auto queue = backend->MakeQueue(rank);
    groups->OnDevice(rank, make);
    return queue;
  };
  node.queued_passes = kQueuedPasses;
}

/// Whether a process loads samples.
bool HasFeeds(const JobPlan& plan, const ProcessPlan& processes, ProcessId self) {
  for (std::size_t stage = 0; stage < plan.stages().size(); ++stage) {
    if (!plan.stages()[stage].reads_data) continue;
    const int index = static_cast<int>(stage);
    for (int dp = 0; dp < plan.GridOfStage(index).layout().dp; ++dp) {
      if (processes.HomeOf(plan.RanksOf(index, dp).front()) == self) return true;
    }
  }
  return false;
}

void PrintLine(const std::string& line) { std::cout << line + "\n" << std::flush; }

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

NodeConfig NodeOf(const JobSetup& setup, std::shared_ptr<const ProcessPlan> processes,
                  ProcessId self, std::shared_ptr<DataPlane> plane,
                  std::shared_ptr<AbortSignal> abort, std::shared_ptr<TensorStore> tensors) {
  const Config& config = setup.plan->config();
  NodeConfig node;
  node.plan = setup.plan;
  node.processes = processes;
  node.self = self;
  node.tensors = std::move(tensors);
  node.plane = plane;
  node.abort = abort;
  node.group_waits = [&] {
    std::vector<std::string> names;
    for (const auto& process : processes->processes()) names.push_back(process.name);
    return std::make_shared<GroupWaits>(std::move(names));
  }();
  const auto groups =
      std::make_shared<GroupTable>(config, *processes, plane.get(), abort, node.group_waits.get());
  node.make_program = MakePrograms(config, groups);
  if (ReadsWeights(config)) {
    node.make_program = WithWeights(config, setup.checkpoints.resume, std::move(node.make_program));
  }
  if (setup.wrap_programs) node.make_program = setup.wrap_programs(node.make_program);
  node.setup_thread = SetupComputeThread;
  if (setup.make_queue) {
    node.make_queue = setup.make_queue;
    node.make_group = [](int, auto host, const GroupNames&, std::optional<Lane>) { return host; };
    node.queued_passes = kQueuedPasses;
  }
  if (config.cluster.backend == Backend::kCuda) {
    UseGpus(node, config.cluster,
            MakeCudaBackend(config, processes->Of(self).ranks, self, abort,
                            self == 0 && !setup.inspect ? PrintLine : SayLine()),
            groups);
  }
  if (FeedPort* const feed = setup.feed;
      feed != nullptr && HasFeeds(*setup.plan, *processes, self)) {
    node.feed_address = ToString(feed->address());
    node.await_machines = [feed](const Node& to) {
      feed->Listen([to](std::shared_ptr<FeedMachine> machine) {
        caf::anon_send(to, MachineCame{std::move(machine)});
      });
    };
  }
  node.source = setup.source;
  node.observer = setup.observer;
  node.faults = setup.faults;
  node.checkpoints = setup.checkpoints;
  node.storage = StorageOf(setup, config.checkpoint, processes->Of(self).name, abort);
  node.copies = setup.copies_state;
  node.writer = setup.writer ? setup.writer : std::make_shared<TaskThread>(TaskPriority::kLow);
  node.held = setup.held;
  node.memory_writer = setup.memory_writer;
  node.rounds = setup.rounds;
  node.inspect = setup.inspect;
  node.rounds_ahead = setup.rounds_ahead;
  node.trace_folder = setup.trace_folder;
  node.actors = std::make_shared<ActivityTable>();
  if (config.trace.messages && !setup.inspect) {
    node.trace = std::make_shared<MessageTrace>(self);
    node.memory = MakeMemoryMeter(config);
    node.cores = UsableCores();
    node.trace_records =
        (static_cast<std::size_t>(config.trace.buffer_mib) << 20) / sizeof(TraceRecord);
  }
  return node;
}

WatchdogConfig WatchdogOf(const Config& config, const NodeConfig& node) {
  WatchdogConfig watchdog;
  watchdog.process = node.processes->Of(node.self).name;
  watchdog.stuck_after = Seconds(config.cluster.stuck_after_s);
  watchdog.pass_timeout = Seconds(config.cluster.pass_timeout_s);
  watchdog.stall_after = Seconds(config.cluster.stall_after_s);
  watchdog.actors = node.actors;
  watchdog.waits = node.group_waits;
  watchdog.abort = node.abort;
  if (node.trace) {
    watchdog.looking = [name = watchdog.process, reported = false]() mutable {
      if (reported || !AnyPagesLost()) return;
      reported = true;
      PrintWarning("the trace file of " + name +
                   " was cut short by another program; the rest of the run is not in it");
    };
  }
  return watchdog;
}

void ListenToUser(const JobSetup& setup, const Node& node) {
  if (setup.interrupt == nullptr) return;
  if (setup.stops_soon) caf::anon_send(node, StopSoon{});
  setup.interrupt->OnSignal([node, &setup, asked = setup.stops_soon](int signal) mutable {
    if (signal == SIGUSR1) return caf::anon_send(node, WriteWaits{});
    if (signal == SIGUSR2) {
      if (!setup.run_directory.empty()) std::cerr << kSavingLine << std::flush;
      return caf::anon_send(node, SaveSoon{});
    }
    const bool again = std::exchange(asked, true);
    if (!setup.quiet) {
      std::cerr << (again ? kEndedAtOnceLine : kFinishingLine) << std::flush;
    }
    if (again) QuickExit(ExitCodeOfSignal(signal));
    caf::anon_send(node, StopSoon{});
  });
}

JobEnd Await(caf::scoped_actor& self, const Node& node) {
  JobEnd end;
  self->request(node, caf::infinite, RunJob{})
      .receive(
          [&](const JobDone& done) {
            end.failure = done.failure;
            end.num_silent = done.num_silent;
          },
          [&](const caf::error& reason) { end.failure = FailureOf(reason); });
  return end;
}

std::shared_ptr<void> GuardDirectory(const std::string& directory,
                                     std::shared_ptr<AbortSignal> abort) {
  if (directory.empty()) return nullptr;
  auto ended = std::make_shared<std::atomic<bool>>(false);
  std::thread([directory, weak = std::weak_ptr(abort), ended] {
    WatchDirectory(directory, weak, *ended);
  }).detach();
  return std::shared_ptr<void>(nullptr, [ended](void*) { ended->store(true); });
}

}  // namespace troupe
