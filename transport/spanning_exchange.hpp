// Collectives between processes, as performed by one member of a spanning group. All but the
// all-to-all are for the leaders, each of which represents its party.
//
// In every operation each participant sends its call to every other one, in a message separate from
// the data, and waits for theirs. So no member is more than one operation ahead of another, the
// number of early messages is bounded, and calls that differ are reported. Labels of data are
// derived from the call, so that the data of different calls never matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "transport/communicator.hpp"
#include "transport/open_messages.hpp"
#include "transport/spanning_group.hpp"

namespace troupe {

/// A call as members in different processes exchange it before they trust its data: 32 bytes,
/// without padding.
struct ExchangedCall {
  GroupCall call;
  std::uint64_t send_bytes = 0;     ///< all-to-all: bytes from the sender of this to its receiver
  std::uint64_t receive_bytes = 0;  ///< all-to-all: bytes the sender expects from its receiver
};
static_assert(sizeof(ExchangedCall) == 32 &&
              std::has_unique_object_representations_v<ExchangedCall>);

/// The sequence number of part `part` (below kMaxParts) of the group's operation `number` (below
/// 2^40).
inline constexpr std::uint64_t kMaxParts = std::uint64_t{1} << 24;
inline std::uint64_t SequenceOf(std::uint64_t number, std::uint64_t part) {
  return number * kMaxParts + part;
}

/// Bytes [begin, end).
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

/// Cuts `num_bytes` into nearly equal parts that begin at multiples of 64.
std::vector<ByteRange> CutIntoLines(std::size_t num_bytes, std::size_t num_parts);

/// For one member's thread. Operations return when this member's part is complete. They throw the
/// errors of OpenMessages; std::logic_error if calls differ; std::invalid_argument if the sizes of
/// an all-to-all do. After an error, raise the job's signal and call Drain.
class SpanningExchange {
 public:
  SpanningExchange(std::shared_ptr<const SpanningGroup> group, int member);

  /// Starts the group's `number`-th operation.
  void Begin(const GroupCall& call, std::uint64_t number);

  void Barrier();
  /// Copies `num_bytes` at `data` of party `root` to every party.
  void Broadcast(std::byte* data, std::size_t num_bytes, std::size_t root);
  /// In place: reduces `count` elements over the parties, in the order of the parties.
  void AllReduce(std::byte* data, std::int64_t count, DType dtype, ReduceOp op);
  /// `output` [group size, num_bytes] contains this party's rows and receives the others'.
  void AllGather(std::byte* output, std::size_t num_bytes);
  /// `input` has one slice per party. `output` receives the reduction of all parties' slices for
  /// this party.
  void ReduceScatter(const std::byte* input, const std::vector<ByteRange>& slices, DType dtype,
                     ReduceOp op, std::byte* output);
  /// Like Communicator::AllToAll, for all members in other processes.
  void AllToAll(const Collective& mine);

  void Drain() { messages_->Drain(); }

  /// Up to this size an all-reduce sends all data to every party.
  static constexpr std::size_t kSmallBytes = 8192;

 private:
  /// This member's call, addressed to one other member.
  struct Peer {
    int member;
    ExchangedCall mine;
  };
  struct Reduction {
    const std::byte* input;
    const std::vector<ByteRange>& slices;
    DType dtype;
    ReduceOp op;
    std::byte* output;  ///< receives this party's slice
    bool share;         ///< all-reduce: every party receives all slices, in place
  };
  class Segments;

  int leader(std::size_t party) const { return group_->parties[party].leader(); }
  std::size_t num_parties() const { return group_->parties.size(); }
  Label DataLabel(std::uint64_t part) const { return {data_stream_, SequenceOf(number_, part)}; }
  Label CallLabel(int from, int to) const;
  std::uint64_t PairOf(int from, int to) const;

  void MeetLeaders();   ///< sets peers_ to the other leaders and receives their calls
  void ReceiveCalls();  ///< posts the receives of the peers' calls; waits throw if one differs
  void SendCalls();
  [[noreturn]] void ThrowDifference(std::size_t peer) const;
  void AllReduceSmall(std::byte* data, std::int64_t count, DType dtype, ReduceOp op);
  void ReduceSlices(const Reduction& reduction);

  const std::shared_ptr<const SpanningGroup> group_;
  const int member_;
  const std::shared_ptr<OpenMessages> messages_;
  GroupCall call_;
  std::uint64_t number_ = 0;
  std::uint64_t data_stream_ = 0;
  std::vector<Peer> peers_;
  Buffer calls_;    // [peers, sizeof(ExchangedCall)]: the peers' calls
  Buffer staging_;  // segments of peers; sized for the largest reduction so far
  std::shared_ptr<void> subscription_;
};

}  // namespace troupe
