// What the emulated NCCL is made of.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/emulated/nccl/nccl.hpp"

namespace troupe::emulated {

/// A collective as one member calls it.
struct NcclCall {
  enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast };
  Kind kind = Kind::kAllReduce;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// A piece that one member sends to another; its memory is in use until it is taken.
struct NcclPiece {
  const std::byte* data = nullptr;
  std::size_t num_bytes = 0;
  std::shared_ptr<bool> taken;
};

struct Clique {
  struct Slot {
    std::vector<NcclCall> calls;
    int arrived = 0;
    int read = 0;  // members that need no other memory any more
  };

  int size = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, int> devices;  // by member that has joined
  std::map<std::uint64_t, Slot> slots;
  std::map<std::pair<int, int>, std::deque<NcclPiece>> mail;  // from, to
};

struct Link {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  std::uint64_t num_calls = 0;
  // Guarded by the clique's mutex:
  bool aborted = false;
  int waiting = 0;  // of its collectives: for members that have not come
  ncclResult_t error = ncclSuccess;
  std::string words;
  int slow = 0;  // questions until the last call is made
};

struct NcclWorld {
  NcclSettings settings;
  mutable std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<Clique>> cliques;  // by id
  std::vector<std::weak_ptr<Link>> links;
  std::uint64_t num_ids = 0;
  int num_made = 0, num_aborted = 0, num_destroyed = 0;
};

NcclWorld& TheNccl();
/// On the thread of a stream: this member's part of its `number`-th collective.
void RunCollective(Link& link, std::uint64_t number, const NcclCall& call);

/// The pieces that one group of calls sends and receives.
struct NcclExchange {
  struct Send {
    int to;
    NcclPiece piece;
  };
  struct Receive {
    int from;
    std::byte* data;
    std::size_t num_bytes;
  };
  std::vector<Send> sends;
  std::vector<Receive> receives;
};
void RunExchange(Link& link, const NcclExchange& exchange);

}  // namespace troupe::emulated

struct ncclComm {
  std::shared_ptr<troupe::emulated::Link> link;
};
