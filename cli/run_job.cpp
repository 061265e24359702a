#include "cli/run_job.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/node_actor.hpp"
#include "cli/preflight.hpp"
#include "data/llava.hpp"
#include "data/llava_source.hpp"
#include "modules/groups.hpp"
#include "modules/synthetic/synthetic_program.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/programs.hpp"

namespace troupe {
namespace {

/// Passes per device that a ring holds before the Tracer must have drained it.
constexpr std::size_t kRingRecords = 1 << 14;

bool AnySynthetic(const Config& config) {
  return std::any_of(config.modules.begin(), config.modules.end(),
                     [](const ModuleConfig& m) { return m.kind == ModuleKind::kSynthetic; });
}

ProgramFactory MakePrograms(const Config& config, const std::shared_ptr<AbortSignal>& abort) {
  auto groups = std::make_shared<GroupTable>(config, abort);
  auto torch = MakeTorchPrograms(config, groups);
  auto synthetic = MakeSyntheticPrograms(config, [groups](const ShardAddress& shard) {
    return std::shared_ptr<Communicator>(groups->Take(shard).data);
  });
  return [config, torch, synthetic](const ShardAddress& shard) {
    const bool computes = config.Find(shard.module)->kind != ModuleKind::kSynthetic;
    return computes ? torch(shard) : synthetic(shard);
  };
}

struct SystemConfig : caf::actor_system_config {
  SystemConfig() {
    // Workers go to sleep at once instead of polling: a device's answer wakes them in 5 us, not 50.
    set("work-stealing.moderate-poll-attempts", std::size_t{0});
    set("scheduler.max-threads", std::size_t{2});  // handlers are short; ranks have their own
  }
};

}  // namespace

std::shared_ptr<InputSource> OpenInputs(const Config& config) {
  if (AnySynthetic(config)) return std::make_shared<SyntheticSource>(config);
  try {
    return std::make_shared<LlavaSource>(config);
  } catch (const std::runtime_error& e) {
    throw DataError(e.what());  // a tokenizer's file that cannot be read is bad data, too
  }
}

std::string RunInProcess(const JobSetup& setup) {
  const Config& config = setup.plan->config();
  CheckResources(static_cast<int>(setup.plan->lock_steps().size()));
  NodeConfig node;
  node.plan = setup.plan;
  node.abort = std::make_shared<AbortSignal>();
  node.make_program = MakePrograms(config, node.abort);
  if (setup.wrap_programs) node.make_program = setup.wrap_programs(node.make_program);
  node.setup_thread = SetupComputeThread;
  node.source = setup.source;
  node.observer = setup.observer;
  node.rounds = setup.rounds;
  node.inspect = setup.inspect;
  node.rounds_ahead = setup.rounds_ahead;
  node.trace_path = setup.trace_path;
  if (!setup.trace_path.empty()) {
    for (const auto& [rank, set] : setup.plan->lock_steps()) {
      node.rings[rank] = std::make_shared<Ring>(kRingRecords);
    }
  }
  SystemConfig system_config;
  caf::actor_system system(system_config);
  caf::scoped_actor self(system);
  auto handle = system.spawn(RunNode, std::move(node));
  std::string failure;
  self->request(handle, caf::infinite, RunJob{})
      .receive([&](const JobDone& done) { failure = done.failure; },
               [&](const caf::error& reason) { failure = TextOf(reason); });
  self->send_exit(handle, caf::exit_reason::user_shutdown);
  return failure;
}

}  // namespace troupe
