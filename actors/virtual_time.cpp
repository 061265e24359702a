#include "actors/virtual_time.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/message_trace.hpp"
#include "actors/node_actor.hpp"

namespace troupe {
namespace {

struct SystemOnOneThread : caf::actor_system_config {
  SystemOnOneThread() { set("scheduler.policy", caf::atom("testing")); }
};

struct IdleObserver : JobObserver {
  void OnRound(const RoundResult&) override {}
};

std::int64_t Nanoseconds(caf::actor_clock::time_point time) {
  return time.time_since_epoch() / caf::actor_clock::duration_type(1);
}

/// Delivers messages until all mailboxes are empty, then advances to the next timeout, until there
/// is none. Returns how many were handled.
std::uint64_t RunToEnd(caf::scheduler::test_coordinator& scheduler) {
  auto& clock = scheduler.clock();
  std::uint64_t handled = 0;
  while (true) {
    for (; scheduler.try_run_once(); ++handled) {
    }
    if (!clock.has_pending_timeout()) return handled;
    clock.current_time = std::max(clock.current_time, clock.schedule().begin()->first);
    clock.trigger_expired_timeouts();
  }
}

/// The number of records that a device makes: none may be dropped, or the trace would lack work.
std::size_t RecordsOn(const JobPlan& plan, int rank, std::int64_t steps) {
  const auto units = static_cast<std::size_t>(plan.config().schedule.microbatches);
  constexpr std::size_t kKinds = 7;  // forward, backward, weights, exchanges and copies, both ways
  constexpr std::size_t kOncePerStep = 2;  // reduce, update
  return plan.ShardsOn(rank).size() * static_cast<std::size_t>(steps) *
         (kKinds * units + kOncePerStep);
}

WorkTime Checked(const VirtualJob& job) {
  return [plan = job.plan, takes = job.takes_ns](WorkKind kind, int stage, std::int64_t unit) {
    const std::int64_t takes_ns = takes(kind, stage, unit);
    if (takes_ns >= 0) return takes_ns;
    throw std::invalid_argument("virtual time: " + std::string(ToString(kind)) + " of " +
                                plan->graph().StageName(stage) + " takes " +
                                std::to_string(takes_ns) + " ns");
  };
}

NodeConfig NodeOf(const VirtualJob& job) {
  const Config& config = job.plan->config();
  NodeConfig node;
  node.plan = job.plan;
  node.processes = std::make_shared<const ProcessPlan>(ProcessPlan::Single(config.cluster.ranks));
  node.abort = std::make_shared<AbortSignal>();
  node.tensors = std::make_shared<TensorStore>(node.abort);
  node.make_program = job.make_program;
  node.source = job.source;
  node.observer = job.observer ? job.observer : std::make_shared<IdleObserver>();
  node.rounds_ahead = job.rounds_ahead;
  node.threads = false;
  node.faults = job.faults;
  node.takes_ns = Checked(job);
  node.rounds = [steps = job.steps, microbatches = config.schedule.microbatches](
                    std::int64_t number) -> std::optional<Round> {
    if (number >= steps) return std::nullopt;
    return Round{number, true, number, microbatches, 1.0};
  };
  node.trace = std::make_shared<MessageTrace>(0, TraceDetail::kWork);
  node.trace_records = 1;
  for (const auto& [rank, set] : job.plan->lock_steps()) {
    node.trace_records += RecordsOn(*job.plan, rank, job.steps);
  }
  return node;
}

/// Adds the recorded work to `run`, on a clock that began with the job.
void Collect(const MessageTrace& recorded, std::int64_t origin_ns, VirtualRun& run) {
  if (recorded.recorder() == nullptr) return;  // the job never began
  if (recorded.recorder()->dropped() > 0)
    throw std::logic_error("virtual time: no room for all passes");
  const RunTrace trace = MergeTraces({recorded.recorder()->Snapshot()}, "virtual time");
  for (const TraceWork& work : trace.work) {
    PassRecord& record = run.records.emplace_back(work.pass);
    record.begin_ns += trace.origin_ns - origin_ns;
    record.end_ns += trace.origin_ns - origin_ns;
    const auto step = static_cast<std::size_t>(record.round);
    if (run.step_ns.size() <= step) run.step_ns.resize(step + 1);
    run.step_ns[step] = std::max(run.step_ns[step], record.end_ns);
  }
  std::ranges::stable_sort(run.records, {}, [](const PassRecord& record) {
    return std::tuple(record.begin_ns, record.rank);
  });
}

}  // namespace

VirtualRun RunInVirtualTime(const VirtualJob& job) {
  VirtualRun run;
  NodeConfig node = NodeOf(job);
  const auto trace = node.trace;
  const auto table = node.actors = std::make_shared<ActivityTable>();
  SystemOnOneThread config;
  caf::actor_system system(config);
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  const std::int64_t origin_ns = Nanoseconds(scheduler.clock().current_time);
  {
    caf::scoped_actor self{system};
    const Node handle = system.spawn(RunNode, std::move(node));
    auto answer = self->request(handle, caf::infinite, RunJob{});
    run.handled = RunToEnd(scheduler);
    if (!self->has_next_message()) {  // a deadlock: report it as a stall
      caf::anon_send(handle, Stalled{0});
      RunToEnd(scheduler);
    }
    run.failure = "the job never ended";
    if (self->has_next_message()) {
      answer.receive([&](const JobDone& done) { run.failure = done.failure.text; },
                     [&](const caf::error& reason) { run.failure = FailureOf(reason).text; });
    }
    caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
  }
  RunToEnd(scheduler);
  run.actors = table->List().size();
  Collect(*trace, origin_ns, run);
  return run;
}

}  // namespace troupe
