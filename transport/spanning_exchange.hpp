// Collectives between processes: what one member of a spanning group says to members of other
// processes. All but the all-to-all are for the leaders, each of which speaks for its party.
//
// In every operation each of those who take part tells every other one what it calls, in a message
// of its own beside the data, and waits for what they call. So nobody is more than one operation
// ahead of anybody, the messages that can be early are bounded, and calls that differ are named.
// Data travels under labels made from the call, so that the data of different calls never meets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/group_call.hpp"
#include "transport/open_messages.hpp"
#include "transport/spanning_group.hpp"

namespace troupe {

/// Bytes [begin, end).
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

/// Cuts `num_bytes` into nearly equal parts that begin at multiples of 64.
std::vector<ByteRange> CutIntoLines(std::size_t num_bytes, std::size_t num_parts);

/// For one member's thread. Operations return when this member's part is complete and throw what
/// OpenMessages throws; std::logic_error when calls differ; std::invalid_argument when the sizes of
/// an all-to-all do. After a throw the job's signal must be raised and Drain be called.
class SpanningExchange {
 public:
  SpanningExchange(std::shared_ptr<const SpanningGroup> group, int member);

  /// Begins the group's `number`-th operation, which is `call`.
  void Begin(const GroupCall& call, std::uint64_t number);

  void Barrier();
  /// Copies `num_bytes` at `data` of party `root` into everybody's.
  void Broadcast(std::byte* data, std::size_t num_bytes, std::size_t root);
  /// In place: the parties' sum (or maximum) of `count` elements, in the order of the parties.
  void AllReduce(std::byte* data, std::int64_t count, DType dtype, ReduceOp op);
  /// `output` [group size, num_bytes] has the rows of this party and gets those of the others.
  void AllGather(std::byte* output, std::size_t num_bytes);
  /// `input` is one slice per party; `output` gets the reduction of everybody's slice for this
  /// party.
  void ReduceScatter(const std::byte* input, const std::vector<ByteRange>& slices, DType dtype,
                     ReduceOp op, std::byte* output);
  /// As Communicator::AllToAll, for all members in other processes.
  void AllToAll(const std::byte* input, std::span<const std::size_t> send_bytes, std::byte* output,
                std::span<const std::size_t> receive_bytes);

  void Drain() { messages_->Drain(); }

  /// Large sums travel in segments of this size, so that summing overlaps with transfer.
  static constexpr std::size_t kSegmentBytes = std::size_t{512} << 10;
  /// Segments of each peer that are under way at once.
  static constexpr std::size_t kWindow = 4;
  /// Up to here an all-reduce sends everything to everybody.
  static constexpr std::size_t kSmallBytes = 8192;

 private:
  /// A call of this member towards one other.
  struct Peer {
    int member;
    GroupCall mine;
  };
  struct Reduction {
    const std::byte* input;
    const std::vector<ByteRange>& slices;
    DType dtype;
    ReduceOp op;
    std::byte* output;  ///< of this party's slice
    bool share;         ///< all-reduce: everybody gets all slices, in place
  };
  class Segments;

  int leader(std::size_t party) const { return group_->parties[party].leader(); }
  std::size_t num_parties() const { return group_->parties.size(); }
  Label DataLabel(std::uint64_t part) const { return {data_stream_, SequenceOf(number_, part)}; }
  Label CallLabel(int from, int to) const;

  void MeetLeaders();   ///< peers_ = the other leaders
  void ReceiveCalls();  ///< posts the receives of what peers_ call: waits throw if it differs
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
  Buffer calls_;    // [peers, sizeof(GroupCall)]: what they call
  Buffer staging_;  // segments of peers; as large as the largest reduction so far needed
  std::shared_ptr<void> subscription_;
};

}  // namespace troupe
