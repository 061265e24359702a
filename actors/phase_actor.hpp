// A colocated edge: encoder and language model share their ranks, each with its own grid.
//   receives  RoundBegin
//             Activation{w} from every encoder replica (link = replica): rows of all microbatches
//             of window w; answered with Gradient{w}
//   sends     RunExchange{w} to all ranks of the group, forward and backward
//             Activation{m} to every language replica, for each microbatch m of the window
//             OffloadState{w}, RestoreState{w} to all ranks of the encoder, where it offloads
//
//   1  encoder forward     until the rows of w of all replicas have arrived
//      transform           rows move to the ranks of the language model's first stage
//   2  language model 1F1B on views of the packed rows, microbatch by microbatch
//   3  transform back      when every microbatch has its gradient; then encoder backward
//
// The phases need no clock: a colocated encoder has limit 1, so its next window waits for the
// gradient of this one, and the gradient waits for the language model. No encoder collective can
// run in phase 2. Rows carry their microbatch and sample all the way, so that packing by microbatch
// and cutting by replica cannot be confused.
//
// With offloading, the encoder's state leaves its devices for phase 2:
//   offload    at the beginning of phase 2, of all pipeline stages and replicas at once
//   restore    in the language model's cool-down: when each replica owes `restore_ahead` gradients
//              or fewer (on average) and the whole state has left. On a device with a queue it is
//              asked for `queued_backwards` gradients earlier: the copies follow what is queued.
//   phase 3    answers the encoder when the state is back, and not before
// In an evaluation nothing leaves: it has no phase 3, and phase 2 has little use for the memory.
//
// With `rows_on_host` the first transform leaves the rows in host memory, and the forward of each
// microbatch takes its own to the device.
//
// The plan of the way back is the inverse of the recorded route, between the same ranks.
//
// phase_actor.cpp walks the phases; phase_exchange.cpp plans the two exchanges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/actor_base.hpp"
#include "layout/route.hpp"
#include "messages/device.hpp"
#include "messages/round.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {

struct PhaseConfig {
  std::string name;        ///< "phase vision>language"
  int stage = 0;           ///< the encoder's last one, as index in the StageGraph
  int group = 0;           ///< number of the exchange group
  std::vector<int> ranks;  ///< of the group; a member's place is its number in the exchange
  Grid encoder = Grid({}, {0});
  Grid language = Grid({}, {0});
  RowCut encoder_cut = {};
  RowCut language_cut = {};
  std::int64_t samples_per_microbatch = 1;
  std::int64_t most_in_pack = 1;   ///< sample numbers of each of them
  UnitLength units;                ///< the encoder's: windows
  std::vector<Downstream> stages;  ///< language first stage, by replica
  std::vector<ActorId> encoders;   ///< the encoder's last stage, by replica
  int link = 0;                    ///< the language stage's number for this edge
  /// (rank, stage index) of every shard of an encoder that offloads its state; else empty.
  std::vector<std::pair<int, int>> offloads;
  std::int64_t restore_ahead = 0;  ///< gradients that each replica owes when restoring begins
  /// Backwards that are on a device's queue when the gradient before them arrives.
  std::int64_t queued_backwards = 0;
  bool rows_on_host = false;  ///< rows wait in host memory until their microbatch's forward
  LockStep devices;
  std::shared_ptr<AbortSignal> abort;
};

struct PhaseState {
  static constexpr const char* name = "phase";

  enum class StateAt { kDevice, kLeaving, kAway, kReturning };

  /// The rows of one encoder replica, and the promise of their gradient.
  struct EncoderRows {
    Activation activation;
    Promise<Gradient> promise;
  };
  /// One window between its first rows and its gradients.
  struct Window {
    std::int64_t first_microbatch = 0;  ///< since the start of the run
    std::int64_t first_of_round = 0;    ///< the same, since the start of its round
    std::int64_t microbatches = 0;
    std::vector<EncoderRows> rows;  ///< by encoder replica
    std::size_t arrived = 0;        ///< of these
    std::vector<RowTable> tables;   ///< of all rows of each microbatch
    /// Rows of each shard of the language model: [replica][microbatch][shard].
    std::vector<std::vector<std::vector<std::int64_t>>> shard_rows;
    Route route;  ///< encoder shard -> language shard: a part of a replica, or its slice
    std::vector<std::vector<std::vector<Buffer>>> gradients;  ///< [replica][microbatch][tp x cp]
    std::size_t missing_gradients = 0;
    bool no_gradient = false;  ///< the answer is "no gradient"
    StateAt state = StateAt::kDevice;
    std::function<void()> when_restored;  ///< phase 3; waits for the state alone
    bool train = true;
    bool last_of_round = false;
    Shape row_shape;
    DType dtype = DType::kFloat32;
    std::int64_t round = 0;
  };
  struct OpenRound {
    std::int64_t number = 0;
    std::int64_t first_unit = 0;
    std::int64_t first_microbatch = 0;
    std::int64_t microbatches = 0;
    Units units;
    bool train = true;
  };

  PhaseConfig config;
  std::vector<OpenRound> rounds;  ///< the latest few that have begun
  std::int64_t next_round = 0;
  std::int64_t next_unit = 0;  ///< first unit of the next round to begin
  std::int64_t next_microbatch = 0;
  std::map<std::int64_t, Window> windows;
  std::vector<EncoderRows> early;  ///< of rounds that have not begun here
};

using PhasePointer = ActorPointer<Phase, PhaseState>;

Phase::behavior_type RunPhase(PhasePointer self, PhaseConfig config);

// phase_exchange.cpp, for phase_actor.cpp.

/// The place of `rank` in `ranks`, which hold it.
std::size_t PlaceOf(int rank, const std::vector<int>& ranks);

/// The exchange that carries `route` (encoder shard -> language shard) to the ranks: every rank of a
/// language shard's first stage ends up with all of the shard's rows. A row that is on the rank
/// already stays; otherwise the encoder shard's rank at the same place, wrapped around, sends it.
/// Members are places in `ranks`.
ExchangePlan ForwardExchange(const Route& route, const Grid& encoder, const Grid& language,
                             const std::vector<int>& ranks);
/// The way back: every rank of an encoder shard ends up with the gradients of all its rows.
ExchangePlan BackwardExchange(const Route& route, const Grid& encoder, const Grid& language,
                              const std::vector<int>& ranks);

}  // namespace troupe
