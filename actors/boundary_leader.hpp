// The two ends of one boundary edge: one leader at each end for every shard, which is the part of a
// replica that one place along cp has. Shard n is part n % cp of replica n / cp.
//
// Source end, for shard s of the source module:
//   receives  Activation{m} from the last stage; answers Gradient{m} when all slices are answered
//   sends     Slice{m} to every destination leader that shares samples with it
//             (at most `credits` microbatches are in flight; others wait)
// Destination end, for shard d of the destination module:
//   receives  Slice{m} from every such source leader; answers GradientSlice{m}
//   sends     Activation{m} to the first stage, once all slices of m have arrived and m-1 is sent;
//             where the stage cuts rows over tp, with a shard for each rank, whose gradient may be
//             in another process
//
// The two data-parallel sizes fix which samples go where (layout/route.hpp). So they also fix which
// leaders send to each other.
// The row table that travels with the microbatch has the number of their rows and, where they are cut
// over cp or tp, the tokens whose places they take (layout/row_table.hpp). The way back uses the pieces
// recorded on the way there. A slice without rows is sent as a message, but no bytes are transported. Rows
// of a single source are passed on without a copy. A slice names its rows, which leave with it; the
// leader that receives it fetches them into its own process, and they count only once they have
// arrived. So the edge's credits bound the bytes in flight between processes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "layout/route.hpp"
#include "layout/row_table.hpp"
#include "messages/pipeline.hpp"

namespace troupe {

/// The members that both ends have.
struct LeaderConfig {
  std::string edge;            ///< "vision>language", for errors
  int shard = 0;               ///< of the module at this end
  Assignment source;           ///< sample numbers of a microbatch by source replica
  Assignment destination;      ///< the same samples by destination replica
  int device = Buffer::kHost;  ///< where fetched rows are placed
  std::shared_ptr<TensorStore> tensors;
  std::shared_ptr<AbortSignal> abort;
  std::vector<ProcessId> peer_homes;  ///< by shard of the module at the other end
  RowCut source_cut = {};
  RowCut destination_cut = {};
  bool packs = false;  ///< a place has samples of several numbers, not all of them
};

struct SourceLeaderConfig : LeaderConfig {
  int credits = 1;
  std::map<int, DestinationLeader> peers;  ///< by destination shard
};

struct SourceLeaderState {
  static constexpr const char* name = "source_leader";

  /// The gradient of the rows that went to one destination.
  struct Piece {
    int destination = 0;
    std::vector<Interval> rows = {};  ///< where they are in the tensor of this shard
    Buffer gradient;
    bool answered = false;  ///< by the peer
    bool arrived = false;   ///< and the bytes are in this process
  };
  struct Flight {
    Promise<Gradient> promise;
    std::vector<Piece> pieces;  ///< by destination
    std::size_t missing = 0;    ///< pieces that have not arrived
    bool no_gradient = false;   ///< the answer is "no gradient"
    UnitPlace place;            ///< for errors
  };
  struct Waiting {
    Activation activation;
    Promise<Gradient> promise;
  };

  SourceLeaderConfig config;
  std::map<std::int64_t, Flight> flights;  ///< by microbatch; its size is the credits in use
  std::deque<Waiting> waiting;             ///< for a credit
};

SourceLeader::behavior_type RunSourceLeader(ActorPointer<SourceLeader, SourceLeaderState> self,
                                            SourceLeaderConfig config);

struct DestinationLeaderConfig : LeaderConfig {
  int link = 0;                         ///< the stage's number for this edge
  Downstream stage;                     ///< the destination module's first stage
  std::vector<ActorId> source_leaders;  ///< by source shard
  ActorId stage_actor = {};             ///< `stage`, for waits
};

struct DestinationLeaderState {
  static constexpr const char* name = "destination_leader";

  struct Piece {
    Slice slice;
    Promise<GradientSlice> promise;
    Buffer buffer;  ///< its rows, once they are in this process
  };
  struct Flight {
    std::map<int, Piece> pieces;  ///< by source shard
    /// By slice along tp, which rows of which piece it got; recorded for the way back.
    std::vector<std::vector<RowPiece>> slices;
    std::vector<Buffer> gradients;      ///< of the stage, by slice
    std::size_t missing_gradients = 0;  ///< that are being fetched
    std::size_t arrived = 0;
  };

  DestinationLeaderConfig config;
  std::vector<int> sources;                ///< shards that share samples with this one
  std::map<std::int64_t, Flight> flights;  ///< by microbatch
  std::int64_t delivered = 0;              ///< microbatches sent to the stage
};

DestinationLeader::behavior_type RunDestinationLeader(
    ActorPointer<DestinationLeader, DestinationLeaderState> self, DestinationLeaderConfig config);

/// The shards at one end of an edge: the samples of its replicas, each in `parts` shards.
struct EndShards {
  const Assignment& replicas;
  int parts = 1;
};
/// Shards of the other end that share samples with `held`, ascending.
std::vector<int> PeersOf(const std::vector<Interval>& held, const EndShards& others);

}  // namespace troupe
