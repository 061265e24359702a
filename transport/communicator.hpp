// Collectives among the ranks of one group. In one process they run among rank threads; NCCL and
// the cross-process group have the same interface.
//
// Every member calls the same operations in the same order. Calls block until the caller's part is
// complete. They sum in rank order, so all members get the same bits in every run. They sleep while
// they wait, and throw Aborted when the job's AbortSignal is raised or a member is gone. Input and
// output may overlap only where stated.
//
// In one process an operation completes on every member or throws on every member: Aborted;
// std::invalid_argument if a member's arguments are illegal; std::logic_error, naming both calls,
// if the calls of two members differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/buffer.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

enum class ReduceOp : std::uint8_t { kSum, kMax };

enum class Operation : std::uint8_t {
  kBarrier,
  kBroadcast,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll
};

/// The part of a call that must be the same on all members. Also its wire format: 16 bytes, without
/// padding.
struct GroupCall {
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kUInt8;  ///< of an operation that reduces
  ReduceOp op = ReduceOp::kSum;
  std::uint8_t unused = 0;
  std::int32_t root = 0;   ///< of a broadcast
  std::int64_t count = 0;  ///< elements of `dtype`, or bytes in an operation that does not reduce

  friend bool operator==(const GroupCall&, const GroupCall&) = default;
};
static_assert(sizeof(GroupCall) == 16 && std::has_unique_object_representations_v<GroupCall>);

/// One member's call. An operation in place has the same input and output.
struct Collective {
  GroupCall call;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::span<const std::size_t> send_bytes = {};     ///< of an all-to-all, one per member
  std::span<const std::size_t> receive_bytes = {};  ///< likewise

  // What the functions of Communicator of the same names do.
  static Collective Broadcast(void* data, std::size_t num_bytes, int root);
  static Collective AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op);
  static Collective AllGather(const void* input, std::size_t num_bytes, void* output);
  static Collective ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                                  void* output);
  static Collective AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                             void* output, std::span<const std::size_t> receive_bytes);
};

/// The sizes of an all-to-all in which member `rank` of `size` sends to the next one and receives
/// from the one before, in a ring.
struct RingSizes {
  std::vector<std::size_t> send_bytes;
  std::vector<std::size_t> receive_bytes;
};
RingSizes RingSizesOf(int rank, int size, std::size_t sent_bytes, std::size_t received_bytes);

/// One member's view of a group; used on that member's thread only.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  ///< this member's place in the group, [0, size)
  virtual int size() const = 0;

  /// Performs one of the operations below.
  virtual void Run(const Collective& mine) = 0;

  // For operations that another thread runs (transport/started_operations.hpp) where a device
  // performs them later than the functions return. The others ignore points.

  /// A point in a queue of a device; null: nothing is queued.
  using Point = std::shared_ptr<void>;
  /// After all that the member has queued so far. Called on the member's thread.
  virtual Point CallerPoint() { return nullptr; }
  /// As Run, after the work before `points`. Returns the point after the operation.
  virtual Point RunAfter(const std::vector<Point>& /*points*/, const Collective& mine) {
    Run(mine);
    return nullptr;
  }
  /// What the member queues from now on waits for `point`. Called on the member's thread.
  virtual void CallerFollows(const Point& /*point*/) {}

  void Barrier() { Run({}); }
  /// Copies `num_bytes` from the root's `data` to every member's `data`.
  void Broadcast(void* data, std::size_t num_bytes, int root);
  /// In place: `data` [count] becomes the reduction over all members.
  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op);
  /// `output` [size * num_bytes] receives every member's `input` [num_bytes] in rank order. `input`
  /// may be its own position in `output`.
  void AllGather(const void* input, std::size_t num_bytes, void* output);
  /// `output` [count] receives elements [rank*count, (rank+1)*count) of the reduction of every
  /// member's `input` [size * count]. `output` may be its own position in `input`.
  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op, void* output);
  /// Piece p of `input` (send_bytes[p] long, pieces packed in rank order) goes to member p. The
  /// pieces from all members arrive in `output`, packed in rank order. receive_bytes[p] must be the
  /// size that p sends to this member; a difference throws std::invalid_argument. Zero is legal.
  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes);
  /// `input` goes to the next member, and what the one before sends arrives in `output`: an
  /// all-to-all. The first comes after the last. `received_bytes` must be what that one sends.
  void PassOn(const void* input, std::size_t sent_bytes, void* output, std::size_t received_bytes);
};

/// Makes the communicators of all members of one group inside this process. Result[i] is the view
/// of member i. A group of one is legal and never waits. `abort` may be null. Reports waits to
/// `names.waits` if that is set. Throws std::invalid_argument for a size below 1. Destroying a
/// member ends the waits of the others.
std::vector<std::unique_ptr<Communicator>> MakeLocalGroup(int size,
                                                          std::shared_ptr<AbortSignal> abort,
                                                          GroupNames names = {});

}  // namespace troupe
