// One pipeline stage of one module, for one replica: decides what its devices run next.
//   receives  RoundBegin         answers StageReport when the round is behind this stage
//             Activation{u, l}   answers Gradient{u} when backward u is done, or, if the link
//                                carries no gradient, when forward u is done
//             Input{u}           answers InputTaken{u} when forward u is done
//   sends     RunForward, RunBackward, RunBackwardWeights to all its shards, through their LockStep
//             Activation{u} on every outgoing link; the answers are the gradients
//             BackwardsDone to its Update at the end of a training round
//
// A message names its tensors; what devices of this process will read is fetched when the message
// comes, and counts as here only then, so that a transfer overlaps with the passes before it.
//
// When to run what: schedule/stage_rule.hpp. A unit that needs no backward here (evaluation, or
// nothing trains at or upstream of this stage) is retired when its outgoing links have answered.
//
// Invariants: units are forwarded and retired in order; every request is answered exactly once, on
// failure with the reason; a round begins only when the one before has been reported.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "actors/promise.hpp"
#include "messages/node.hpp"
#include "schedule/stage_rule.hpp"
#include "transport/abort_signal.hpp"
#include "transport/tensor_store.hpp"

namespace troupe {

struct IncomingLink {
  std::string source;            ///< module the rows come from; the stage's own for a pipeline hop
  ActorId from;                  ///< who sends over it
  bool carries_gradient = true;  ///< something upstream of the link trains
};

struct StageConfig {
  int stage = 0;  ///< index in the StageGraph
  int dp = 0;
  std::string name;            ///< "language.s0 dp1"
  std::vector<int> ranks;      ///< one per shard, tp fastest; the first is the boundary leader's
  std::vector<bool> here;      ///< by shard: its device is in this process
  std::vector<int> on_device;  ///< by shard: the GPU that it reads its tensors on; empty: none
  LockStep devices;
  StageRule rule;                          ///< of rounds in which this stage runs backwards
  StageRule rule_without_backward;         ///< of the others: 1f1b
  std::int64_t microbatches_per_unit = 1;  ///< 0 = the whole round
  bool runs_backward = true;
  bool reads_data = false;  ///< a Feed brings Inputs for every unit
  ActorId feed;             ///< that Feed
  std::vector<IncomingLink> in;
  std::vector<OutgoingLink> out;
  std::vector<ActorId> receivers;  ///< by outgoing link
  /// By link and shard: the process of the stage that fetches what this one sends there, which may
  /// be this one. A link without shards leads to a leader or a phase.
  std::vector<std::vector<ProcessId>> in_fetchers;
  std::vector<std::vector<ProcessId>> out_fetchers;
  Update update;  ///< invalid when the stage has no trainable parameters
  /// Passes that its devices may have at a time. 1: each is decided when the one before is done.
  /// 2: a device that runs a queue finds the next pass there when it is done with one.
  std::size_t queued_passes = 1;
  bool virtual_time = false;  ///< decide only when all of an instant has come (virtual_time.hpp)
  std::shared_ptr<TensorStore> tensors;
  std::shared_ptr<AbortSignal> abort;
};

struct StageState {
  static constexpr const char* name = "stage";

  /// What is owed and known of one unit between its forward and its retirement.
  struct Flight {
    std::vector<Promise<Gradient>> askers;  ///< one per incoming link
    std::vector<bool> answered;             ///< asker i has its answer
    Promise<InputTaken> feed;
    std::vector<std::vector<Buffer>> gradients;  ///< by outgoing link
    std::vector<std::size_t> missing;            ///< by outgoing link: shards on their way here
    std::vector<bool> announced;                 ///< by outgoing link: the gradient has been told
    bool sent = false;                           ///< the outputs are with the outgoing links
    std::shared_ptr<const RowTable> rows;
    std::int64_t num_tokens = 0;       ///< that its data holds
    std::vector<std::string> samples;  ///< ids of those in its data
  };
  struct Arrived {
    Activation activation;
    Promise<Gradient> asker;
    std::size_t missing = 0;  ///< shards on their way here
  };
  struct Fed {
    Input input;
    Promise<InputTaken> asker;
  };
  struct OpenRound {
    Round round;
    StageReport report;
    Promise<StageReport> asker;
  };

  StageConfig config;
  StageCounters counters;
  std::vector<std::deque<Arrived>> arrived;  ///< by incoming link, not yet forwarded
  std::vector<std::int64_t> announced;       ///< by incoming link: activations told of so far
  std::vector<std::int64_t> activations;     ///< by incoming link: of these, here in order
  std::deque<Fed> fed;                       ///< not yet forwarded
  std::int64_t inputs = 0;                   ///< since the start
  std::vector<std::int64_t> told;            ///< by outgoing link: gradients told of so far
  std::vector<std::int64_t> gradients;       ///< by outgoing link: of these, here in order
  std::map<std::int64_t, Flight> flights;
  std::deque<OpenRound> rounds;  ///< the front one is running
  std::int64_t next_round = 0;
  std::deque<Pass> running;        ///< with the devices, oldest first
  std::int64_t forwards_done = 0;  ///< since the start
  bool updating = false;           ///< waiting for the Update at the round's end
  bool failed = false;
  bool deciding = false;  ///< virtual time: a DecideNow is under way
};

/// Of the round that is running.
const StageRule& RuleOf(const StageState& s);

/// What it waits for without having asked for it.
ExpectedWaits ExpectedBy(const StageState& s);

Stage::behavior_type RunStage(ActorPointer<Stage, StageState> self, StageConfig config);

}  // namespace troupe
