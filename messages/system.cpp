#include "messages/system.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/io/middleman.hpp>

#include "messages/node.hpp"
#include "messages/wire.hpp"

namespace troupe {
namespace {

template <class... Messages>
void Register(SystemConfig& config, std::array<const char*, sizeof...(Messages)> names) {
  std::size_t i = 0;
  (config.add_message_type<Messages>(names[i++]), ...);
}

/// Type names travel with every message, so they are short; both sides must agree on them.
void RegisterAll(SystemConfig& config) {
  Register<Activation, Gradient, Slice, GradientSlice>(config, {"Act", "Grad", "Slice", "GSlice"});
  Register<ToSet<RunForward>, FromSet<ForwardDone>, ToSet<RunBackward>, FromSet<BackwardDone>>(
      config, {"Fs", "FsDone", "Bs", "BsDone"});
  Register<ToSet<ReduceGradients>, FromSet<GradientsReduced>>(config, {"Rs", "RsDone"});
  Register<ToSet<UpdateParameters>, FromSet<ParametersUpdated>>(config, {"Us", "UsDone"});
  Register<ToSet<RunExchange>, FromSet<ExchangeDone>>(config, {"Es", "EsDone"});
  Register<ToSet<OffloadState>, FromSet<StateOffloaded>, ToSet<RestoreState>,
           FromSet<StateRestored>>(config, {"Os", "OsDone", "Qs", "QsDone"});
  Register<OffloadState, StateOffloaded, RestoreState, StateRestored>(config,
                                                                      {"O", "ODone", "Q", "QDone"});
  Register<ToSet<Inspect>, FromSet<Inspected>>(config, {"Is", "IsDone"});
  Register<ToSet<SaveShard>, ToSet<LoadShard>, FromSet<ShardStored>>(config,
                                                                     {"Saves", "Loads", "StoredS"});
  Register<SaveShard, LoadShard, ShardStored>(config, {"Save", "Load", "Stored"});
  Register<RunForward, ForwardDone, RunBackward, BackwardDone>(config,
                                                               {"F", "FDone", "B", "BDone"});
  Register<RunBackwardWeights, BackwardWeightsDone, ToSet<RunBackwardWeights>,
           FromSet<BackwardWeightsDone>>(config, {"W", "WDone", "Ws", "WsDone"});
  Register<ReduceGradients, GradientsReduced>(config, {"R", "RDone"});
  Register<UpdateParameters, ParametersUpdated>(config, {"U", "UDone"});
  Register<RunExchange, ExchangeDone>(config, {"E", "EDone"});
  Register<Inspect, Inspected>(config, {"I", "IDone"});
  Register<RoundBegin, StageReport, Input, InputTaken>(config,
                                                       {"Round", "Report", "Input", "Taken"});
  Register<BackwardsDone, Updated, UpdateRound, SquaredNorm, ApplyUpdate, UpdateDone>(
      config, {"BwdsDone", "Updated", "URound", "Norm", "Apply", "UpDone"});
  Register<RunJob, JobDone, JobFailed, StopSoon>(config, {"RunJob", "JobDone", "Failed", "Stop"});
  Register<OpenTrace, TraceOpened>(config, {"Trace", "Traced"});
  Register<SpawnDevices, DevicesSpawned, SpawnLockStep, SpawnUpdate, SpawnStage>(
      config, {"MkDevs", "Devs", "MkLock", "MkUpd", "MkStage"});
  Register<SpawnDestinationLeader, SpawnSourceLeader, SpawnPhase, SpawnFeed, Spawned>(
      config, {"MkDst", "MkSrc", "MkPhase", "MkFeed", "Made"});
  Register<Introduce, TellWaits>(config, {"Hello", "TellWaits"});
  Register<ReportWaits, Waits, EndActors, ActorsEnded>(config, {"Waits?", "Waits", "End", "Ended"});
}

}  // namespace

SystemConfig::SystemConfig(std::shared_ptr<TensorStore> tensor_store, bool spans_processes)
    : tensors(std::move(tensor_store)) {
  // Workers go to sleep at once instead of polling: a device's answer wakes them in 5 us, not 50.
  set("work-stealing.moderate-poll-attempts", std::size_t{0});
  set("scheduler.max-threads", std::size_t{2});  // handlers are short; ranks have their own
  if (!spans_processes) return;
  load<caf::io::middleman>();
  RegisterAll(*this);
}

namespace wire {

TensorStore& StoreOf(caf::execution_unit* context) {
  const auto* config =
      context == nullptr ? nullptr : dynamic_cast<const SystemConfig*>(&context->system().config());
  if (config == nullptr || !config->tensors) {
    throw std::logic_error("a tensor crosses processes in a system that keeps none");
  }
  return *config->tensors;
}

caf::error Broken(const char* what) {
  return caf::make_error(caf::sec::invalid_argument, std::string("broken message: ") + what);
}

}  // namespace wire
}  // namespace troupe
