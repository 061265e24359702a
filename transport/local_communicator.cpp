// The collectives of a local group. Each member's thread performs its part.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/collective_arguments.hpp"
#include "transport/communicator.hpp"
#include "transport/local_group.hpp"
#include "transport/reduce.hpp"
#include "transport/timed_wait.hpp"

namespace troupe {
namespace {

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalGroup> group, int rank)
      : group_(std::move(group)), rank_(rank), sources_(static_cast<std::size_t>(group_->size())) {}
  LocalCommunicator(const LocalCommunicator&) = delete;
  LocalCommunicator& operator=(const LocalCommunicator&) = delete;
  ~LocalCommunicator() override { group_->Depart(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void Run(const Collective& mine) override;

 private:
  /// Publishes the input in this member's slot, as a copy if it is small.
  void Publish(const Collective& mine);
  /// This member's part, while peers may use its memory.
  void Perform(const Collective& mine);
  const LocalCall& Peer(int rank) const {
    return group_->calls(turn_)[static_cast<std::size_t>(rank)];
  }
  /// Points sources_ at byte `offset` of every member's input.
  void PointAt(std::size_t offset);
  void ReduceTo(std::byte* output, std::size_t offset, const GroupCall& call);
  void ReduceSliceInPlace(const GroupCall& call);

  const std::shared_ptr<LocalGroup> group_;
  const int rank_;
  int turn_ = 0;         // the set of slots in use
  bool direct_ = false;  // members use each other's memory
  std::vector<const std::byte*> sources_;
};

void LocalCommunicator::Publish(const Collective& mine) {
  LocalCall& slot = group_->Publish(turn_, rank_, mine);
  if (!slot.error.empty()) return;
  const std::size_t num_bytes = InputBytes(mine, rank_, size());
  slot.direct = num_bytes > LocalGroup::kStagedBytes;
  if (slot.direct) return;
  std::byte* const staging = group_->staging(turn_, rank_);
  Copy(staging, mine.input, num_bytes);
  slot.input = staging;
}

void LocalCommunicator::Run(const Collective& mine) {
  const TimedWait timed;
  turn_ = 1 - turn_;
  Publish(mine);
  group_->Enter(turn_, rank_);  // the calls stay valid until Leave and during one more call
  const std::vector<LocalCall>& calls = group_->calls(turn_);
  direct_ =
      std::any_of(calls.begin(), calls.end(), [](const LocalCall& call) { return call.direct; });
  Perform(mine);
  if (direct_) group_->Leave();
}

void LocalCommunicator::Perform(const Collective& mine) {
  const std::size_t num_bytes = BytesOfCount(mine.call);
  std::byte* target = mine.output;
  switch (mine.call.operation) {
    case Operation::kBarrier:
      return;
    case Operation::kBroadcast:
      if (mine.call.root != rank_) Copy(target, Peer(mine.call.root).input, num_bytes);
      return;
    case Operation::kAllReduce:
      return direct_ ? ReduceSliceInPlace(mine.call) : ReduceTo(target, 0, mine.call);
    case Operation::kAllGather:
      for (int rank = 0; rank < size(); ++rank, target += num_bytes)
        Copy(target, rank == rank_ ? mine.input : Peer(rank).input, num_bytes);
      return;
    case Operation::kReduceScatter:
      return ReduceTo(target, num_bytes * static_cast<std::size_t>(rank_), mine.call);
    case Operation::kAllToAll:
      for (int rank = 0; rank < size(); ++rank) {
        const std::span<const std::size_t> sent = Peer(rank).send_bytes;
        const std::size_t offset = Total(sent.first(static_cast<std::size_t>(rank_)));
        const std::size_t piece_bytes = mine.receive_bytes[static_cast<std::size_t>(rank)];
        Copy(target, Peer(rank).input + offset, piece_bytes);
        target += piece_bytes;
      }
  }
}

void LocalCommunicator::PointAt(std::size_t offset) {
  for (int rank = 0; rank < size(); ++rank)
    sources_[static_cast<std::size_t>(rank)] = Peer(rank).input + offset;
}

void LocalCommunicator::ReduceTo(std::byte* output, std::size_t offset, const GroupCall& call) {
  PointAt(offset);
  ReduceOver(sources_, call.count, call.dtype, call.op, output);
}

// Each member reduces one slice of all members' data. No other member touches that slice, so the
// sums may overwrite the addends as soon as these are read, and no further barrier separates the
// scattered sums from the gathered result.
void LocalCommunicator::ReduceSliceInPlace(const GroupCall& call) {
  if (size() == 1) return;
  const auto cut = [&](int rank) {
    return BeginOfPart(BytesOfCount(call), kCacheLineBytes, static_cast<std::size_t>(rank),
                       static_cast<std::size_t>(size()));
  };
  const std::size_t end = cut(rank_ + 1);
  alignas(kCacheLineBytes) std::byte sums[kReduceBlockBytes];
  for (std::size_t begin = cut(rank_); begin < end; begin += kReduceBlockBytes) {
    const std::size_t block_bytes = std::min(kReduceBlockBytes, end - begin);
    PointAt(begin);
    Reduce(sources_, static_cast<std::int64_t>(block_bytes / SizeOf(call.dtype)), call.dtype,
           call.op, sums);
    for (int rank = 0; rank < size(); ++rank)
      std::memcpy(Peer(rank).output + begin, sums, block_bytes);
  }
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeLocalGroup(int size,
                                                          std::shared_ptr<AbortSignal> abort,
                                                          GroupNames names) {
  const auto group = std::make_shared<LocalGroup>(size, std::move(abort), std::move(names));
  std::vector<std::unique_ptr<Communicator>> members;
  for (int rank = 0; rank < size; ++rank)
    members.push_back(std::make_unique<LocalCommunicator>(group, rank));
  return members;
}

}  // namespace troupe
