// A whole job of synthetic modules on real threads: what the deterministic scheduler cannot run,
// because ranks block in collectives.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <caf/send.hpp>

#include "actors/watchdog.hpp"
#include "tests/actors/job_fixture.hpp"

namespace troupe {

/// One run with a thread per device, feed and director. A run that does not end within the bound is
/// ended by the abort signal and reported as a failure.
struct ThreadedJob {
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::shared_ptr<GroupWaits> waits = std::make_shared<GroupWaits>();
  std::shared_ptr<const JobPlan> plan;
  std::shared_ptr<MessageTrace> trace;
  std::function<ProgramFactory(ProgramFactory)> wrap_program;
  bool inspect = false;
  bool queues = false;  ///< devices run queues
  std::vector<PlantedFault> faults;
  /// A job in which nothing moves for so long ends with the actor that it waits for; 0: it does not.
  std::chrono::milliseconds stall_after{0};

  JobDone Run(const Config& config, const RoundPlan& rounds) {
    NodeConfig node;
    plan = node.plan = std::make_shared<const JobPlan>(config);
    node.make_program = MakeSyntheticPrograms(config, Replicas(config));
    if (wrap_program) node.make_program = wrap_program(node.make_program);
    if (queues) {
      node.make_program = OnQueues(node.make_program);
      node.make_queue = [](int rank) { return std::make_unique<RunningQueue>(rank); };
      node.make_group = [](int, auto host, const GroupNames&, std::optional<Lane>) { return host; };
      node.queued_passes = 2;
    }
    node.source = std::make_shared<SyntheticSource>(config);
    node.observer = seen;
    node.abort = abort;
    node.tensors = std::make_shared<TensorStore>(abort);
    node.processes = std::make_shared<const ProcessPlan>(
        ProcessPlan::Single(plan->lock_steps().rbegin()->first + 1));
    node.rounds = rounds;
    node.inspect = inspect;
    node.faults = faults;
    node.group_waits = waits;
    node.actors = std::make_shared<ActivityTable>();
    node.trace = trace = std::make_shared<MessageTrace>(0);
    node.trace_records = 1 << 14;
    caf::actor_system_config system_config;
    caf::actor_system system{system_config};
    caf::scoped_actor self{system};
    WatchdogConfig watched;
    watched.interval = std::chrono::milliseconds(50);
    watched.stall_after = stall_after;
    watched.actors = node.actors;
    watched.waits = waits;
    watched.abort = abort;
    auto handle = system.spawn(RunNode, std::move(node));
    watched.stalled = [handle](std::chrono::nanoseconds since) {
      caf::anon_send(handle, Stalled{since.count()});
    };
    std::optional<Watchdog> watchdog;
    if (stall_after.count() > 0) watchdog.emplace(std::move(watched));
    JobDone done{"the job never ended"};
    self->request(handle, std::chrono::seconds(30), RunJob{})
        .receive([&](const JobDone& d) { done = d; },
                 [&](const caf::error& e) {
                   done.failure = FailureOf(e);
                   abort->Raise("the test gave up waiting");
                 });
    self->send_exit(handle, caf::exit_reason::user_shutdown);
    return done;
  }

  std::string Order(const std::string& stage) const {
    std::vector<PassRecord> records;
    const RunTrace run = TraceOf(*trace);
    for (const TraceWork& work : run.work) records.push_back(work.pass);
    for (const PassOrder& entry : PassOrders(records, 0)) {
      if (plan->graph().StageName(entry.stage) == stage) return entry.text;
    }
    return {};
  }

 private:
  /// One group of replicas per module and stage.
  std::function<std::shared_ptr<Communicator>(const ShardAddress&)> Replicas(const Config& config) {
    auto groups = std::make_shared<
        std::map<std::tuple<std::string, int, int>, std::vector<std::shared_ptr<Communicator>>>>();
    for (const ModuleConfig& module : config.modules) {
      for (int pp = 0; pp < module.num_stages(); ++pp) {
        for (int tp = 0; tp < module.layout.tp; ++tp) {
          GroupNames names{waits.get(), "data " + module.name + ".s" + std::to_string(pp), {}};
          for (auto& member : MakeLocalGroup(module.layout.dp, abort, std::move(names))) {
            (*groups)[{module.name, pp, tp}].push_back(std::move(member));
          }
        }
      }
    }
    return [groups](const ShardAddress& shard) {
      return groups->at({shard.module, shard.pp, shard.tp})[static_cast<std::size_t>(shard.dp)];
    };
  }
};

}  // namespace troupe
