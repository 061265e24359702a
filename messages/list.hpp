// Every message between actors, once: to register those that may cross processes (system.cpp), to
// number and name those that are traced (facts.cpp), and for tests.
#pragma once

#include "messages/data.hpp"
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
                RunExchange, OffloadState, RestoreState, Inspect, CopyState, SaveShard, LoadShard>;
using DeviceAnswers = MessageList<ForwardDone, BackwardDone, BackwardWeightsDone, GradientsReduced,
                                  ParametersUpdated, ExchangeDone, StateOffloaded, StateRestored,
                                  Inspected, StateCopied, ShardStored, ShardLoaded>;

/// The work of a job: traced.
using WorkMessages =
    decltype(MessageList<Activation, Gradient, Slice, GradientSlice>() +
             decltype(SetsOf<ToSet>(DeviceCommands()))() +
             decltype(SetsOf<FromSet>(DeviceAnswers()))() + DeviceCommands() + DeviceAnswers() +
             MessageList<RoundBegin, StageReport, Input, InputTaken, BackwardsDone, Updated,
                         UpdateRound, SquaredNorm, ApplyUpdate, UpdateDone, SaveState, StateSaved,
                         RunJob, JobDone, JobFailed, StopSoon, SaveSoon, PrepareSample,
                         SamplePrepared>());

/// The same, but they stay in their process: an actor sends them to itself, or a feed to its
/// dispatcher.
using OwnMessages = MessageList<ShardArrived, SliceArrived, StateMoved, PrepareUnit, UnitPrepared,
                                SamplesUsed, ReadSample, TokenizeSample, DecodeSample,
                                MachinePrepared, MachineGone, MachineJoined>;

/// Nodes create, watch and end actors by these: not traced.
using NodeMessages =
    MessageList<OpenTrace, TraceOpened, SpawnDevices, DevicesSpawned, SpawnLockStep, SpawnUpdate,
                SpawnStage, SpawnDestinationLeader, SpawnSourceLeader, SpawnPhase, SpawnFeed,
                Spawned, Introduce, WriteWaits, ReportWaits, Waits, EndActors, ActorsEnded,
                LeaveJob, FindFile, FileFound, ReadFile, FileRead, PublishManifest,
                ManifestPublished, HoldMirror, MirrorHeld, GiveFiles, FilesGiven, CompleteHeld,
                HeldCompleted, NodeWorkEnded>;

}  // namespace troupe
