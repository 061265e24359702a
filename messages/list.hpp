// Every message between actors, once. What may cross processes is registered from here (system.cpp),
// what is traced has its number and name from here (facts.cpp), and tests go through it.
#pragma once

#include "messages/node.hpp"

namespace troupe {

template <class... Messages>
struct MessageList {
  /// Calls `visit.template operator()<Message>()` for each, in order.
  template <class Visit>
  static void ForEach(Visit visit) {
    (visit.template operator()<Messages>(), ...);
  }
  template <class... Others>
  auto operator+(MessageList<Others...>) const -> MessageList<Messages..., Others...>;
};

template <template <class> class Set, class... Messages>
MessageList<Set<Messages>...> SetsOf(MessageList<Messages...>);

/// A device gets a command from its lock step, which gets a set of them.
using DeviceCommands =
    MessageList<RunForward, RunBackward, RunBackwardWeights, ReduceGradients, UpdateParameters,
                RunExchange, OffloadState, RestoreState, Inspect, SaveShard, LoadShard>;
using DeviceAnswers =
    MessageList<ForwardDone, BackwardDone, BackwardWeightsDone, GradientsReduced, ParametersUpdated,
                ExchangeDone, StateOffloaded, StateRestored, Inspected, ShardStored>;

/// What actors work by: traced.
using WorkMessages =
    decltype(MessageList<Activation, Gradient, Slice, GradientSlice>() +
             decltype(SetsOf<ToSet>(DeviceCommands()))() +
             decltype(SetsOf<FromSet>(DeviceAnswers()))() + DeviceCommands() + DeviceAnswers() +
             MessageList<RoundBegin, StageReport, Input, InputTaken, BackwardsDone, Updated,
                         UpdateRound, SquaredNorm, ApplyUpdate, UpdateDone, RunJob, JobDone,
                         JobFailed, StopSoon>());

/// The same, but of an actor to itself: these stay in their process.
using OwnMessages = MessageList<ShardArrived, SliceArrived, StateMoved>;

/// By which Nodes make, watch and end actors: not traced.
using NodeMessages =
    MessageList<OpenTrace, TraceOpened, SpawnDevices, DevicesSpawned, SpawnLockStep, SpawnUpdate,
                SpawnStage, SpawnDestinationLeader, SpawnSourceLeader, SpawnPhase, SpawnFeed,
                Spawned, Introduce, TellWaits, ReportWaits, Waits, EndActors, ActorsEnded>;

}  // namespace troupe
