// One pipeline stage of one module, for one replica: decides what its devices run next.
//   receives  RoundBegin         answers StageReport when the last unit of the round is retired
//             Activation{u, l}   answers Gradient{u} when backward u is done, or, if the link
//                                carries no gradient, when forward u is done
//             Input{u}           answers InputTaken{u} when forward u is done
//   sends     RunForward, RunBackward, RunBackwardWeights to all its shards, through their LockStep
//             Activation{u} on every outgoing link; the answers are the gradients
//             BackwardsDone to its Update at the end of a training round
//
// A message names its tensors. Those that devices of this process will read are fetched when the
// message arrives, so that a transfer overlaps with the passes before it; the message counts only
// once they have arrived.
//
// The rule of decisions: schedule/stage_rule.hpp. A unit that needs no backward here (evaluation,
// or nothing trains at or upstream of this stage) is retired when its outgoing links have answered.
//
// Invariants: units are forwarded and retired in order; every request is answered exactly once, on
// failure with the reason; a round begins only when the one before has been reported.
//
// stage_actor.cpp decides and handles messages; stage_passes.cpp runs passes and fetches tensors.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/node.hpp"
#include "plan/unit_samples.hpp"
#include "schedule/stage_rule.hpp"

namespace troupe {

struct StageConfig {
  /// A link of the graph is one of these, or one for each leader of this stage's replica: leaders have
  /// the rows of one part along cp. `place` is the link's among those of the program.
  /// `fetchers`, by shard of the stage at the other end: the process that fetches the tensors sent
  /// to that shard, which may be this one. Empty if a leader or a phase is at that end.
  struct Incoming {
    std::string source;            ///< module of the rows; the stage's own for a pipeline hop
    ActorId from;                  ///< sends over the link
    bool carries_gradient = true;  ///< something upstream of the link trains
    std::vector<ProcessId> fetchers;
    std::size_t place = 0;
    std::optional<int> part = {};  ///< along cp; unset: of all parts
    RowCut cut = {};               ///< with `part`
  };
  struct Outgoing {
    LinkTarget target;
    ActorId to;  ///< the same actor, for errors
    std::vector<ProcessId> fetchers;
    std::size_t place = 0;
    std::optional<int> part = {};
  };

  int stage = 0;  ///< index in the StageGraph
  int dp = 0;
  std::string name;            ///< "language.s0 dp1"
  std::vector<int> ranks;      ///< one per shard, tp fastest; those of tp = 0 have boundary leaders
  int parts = 1;               ///< cp
  std::vector<bool> local;     ///< by shard: its device is in this process
  std::vector<int> on_device;  ///< by shard: the GPU that it reads its tensors on; empty: none
  LockStep devices;
  StageRule rule;                   ///< of rounds in which this stage runs backwards
  StageRule rule_without_backward;  ///< of the others: 1f1b
  UnitLength units;
  bool runs_backward = true;
  bool reads_data = false;  ///< every unit needs an Input
  ActorId feed;             ///< sends it
  std::vector<Incoming> in;
  std::vector<Outgoing> out;
  Update update;  ///< invalid when the stage has no trainable parameters
  /// Passes that its devices may have at a time. 1: each is decided when the one before is done.
  /// 2: a device that runs a queue finds the next pass there when it is done with one.
  std::size_t queued_passes = 1;
  bool virtual_time = false;  ///< decide only at the end of an instant (virtual_time.hpp)
  std::shared_ptr<TensorStore> tensors;
  std::shared_ptr<AbortSignal> abort;
};

struct StageState {
  static constexpr const char* name = "stage";

  /// The activations of one link. `received` and `complete` count since the start of the run; those
  /// that are complete are so in order.
  struct IncomingLink {
    struct Waiting {
      Activation activation;
      Promise<Gradient> promise;
      std::size_t missing = 0;  ///< shards that are being fetched
    };
    std::deque<Waiting> waiting;  ///< not yet forwarded
    std::int64_t received = 0;
    std::int64_t complete = 0;  ///< with all shards
  };
  /// The gradients of one link, counted in the same way.
  struct OutgoingLink {
    std::int64_t received = 0;
    std::int64_t complete = 0;
  };
  /// One unit between its forward and its retirement.
  struct Flight {
    struct Returned {
      std::vector<Buffer> shards;
      std::size_t missing = 0;  ///< shards that are being fetched
      bool received = false;
    };
    std::vector<Promise<Gradient>> promises;  ///< by incoming link; pending until it is answered
    std::vector<Returned> gradients;          ///< by outgoing link
    Promise<InputTaken> taken;
    std::shared_ptr<const RowTable> rows;
    std::int64_t num_tokens = 0;       ///< of its data
    std::vector<std::string> samples;  ///< ids of those in its data
  };
  struct WaitingInput {
    Input input;
    Promise<InputTaken> promise;
  };
  struct OpenRound {
    Round round;
    Units units;
    StageReport report;
    Promise<StageReport> promise;
  };

  StageConfig config;
  /// The shards [begin, end) of a part.
  Interval ShardsOf(const std::optional<int>& part) const {
    const auto all = std::ssize(config.ranks);
    const auto tp = all / config.parts;
    return part ? Interval{*part * tp, (*part + 1) * tp} : Interval{0, all};
  }
  StageCounters counters;
  std::vector<IncomingLink> in;     ///< as StageConfig::in
  std::vector<OutgoingLink> out;    ///< as StageConfig::out
  std::deque<WaitingInput> inputs;  ///< not yet forwarded
  std::int64_t inputs_received = 0;
  std::map<std::int64_t, Flight> flights;
  std::deque<OpenRound> rounds;  ///< the front one is running
  std::int64_t next_round = 0;
  std::deque<Pass> running;  ///< on the devices, oldest first
  std::int64_t forwards_done = 0;
  bool updating = false;  ///< the Update at the round's end has not answered
  bool deciding = false;  ///< virtual time: a DecideNow is in the mailbox
  /// When its devices began to wait for the input data of the next unit alone; 0: they do not wait.
  std::int64_t data_wait_since_ns = 0;
};
using StagePointer = ActorPointer<Stage, StageState>;

Stage::behavior_type RunStage(StagePointer self, StageConfig config);

// stage_actor.cpp, for stage_passes.cpp.

/// Decides; in virtual time as the simulator does, once all that ends at this instant has ended.
/// Every handler that changes the state ends with it.
void Pump(StagePointer self);
/// Returns whether units of the running round come back. There must be one.
bool NeedsBackward(const StageState& s);
/// The place of `unit` in its step, for errors; unknown if its round has not begun.
UnitPlace PlaceOf(const StageState& s, std::int64_t unit);
/// "language.s1: expected the gradient of microbatch 9 from language.s2 (step 2 mb 3), got 10";
/// empty if `got` is `expected`.
std::string WrongUnit(const StageState& s, const std::string& kind, std::int64_t expected,
                      const ActorId& from, std::int64_t got);

// stage_passes.cpp, for stage_actor.cpp.

/// Starts a pass that the rule has chosen and that is counted.
void StartPass(StagePointer self, const Pass& pass);
/// An activation whose unit is the expected one.
void ReceiveActivation(StagePointer self, const Activation& activation, Promise<Gradient> promise);
/// A shard that had to be fetched.
void ReceiveShard(StagePointer self, const ShardArrived& arrived);

}  // namespace troupe
