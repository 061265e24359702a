// The collectives of a local group. Each member's thread performs its part.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/collective_arguments.hpp"
#include "transport/communicator.hpp"
#include "transport/local_group.hpp"
#include "transport/reduce.hpp"

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

  void Barrier() override;
  void Broadcast(void* data, std::size_t num_bytes, int root) override;
  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override;
  void AllGather(const void* input, std::size_t num_bytes, void* output) override;
  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override;
  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override;

 private:
  /// Returns this member's cleared slot for its next call.
  LocalCall& Begin(LocalOperation operation, std::int64_t count);
  /// Begin for the operations that reduce; an illegal count becomes the call's error.
  LocalCall& BeginReduction(LocalOperation operation, std::int64_t count, DType dtype, ReduceOp op);
  /// Lets peers read `num_bytes` of `input`; copies them first if they are few.
  void Offer(LocalCall& call, const void* input, std::size_t num_bytes);
  /// Waits for the calls of all members. They stay valid until End and during one more call.
  void Enter();
  /// Waits for the members that use this member's memory.
  void End();
  const LocalCall& Peer(int rank) const {
    return group_->calls(turn_)[static_cast<std::size_t>(rank)];
  }
  /// Points sources_ at byte `offset` of every member's input.
  void PointAt(std::size_t offset);
  void ReduceSliceInPlace(std::int64_t count, DType dtype, ReduceOp op);

  const std::shared_ptr<LocalGroup> group_;
  const int rank_;
  int turn_ = 0;         // the set of slots in use
  bool direct_ = false;  // members use each other's memory
  std::vector<const std::byte*> sources_;
};

LocalCall& LocalCommunicator::Begin(LocalOperation operation, std::int64_t count) {
  turn_ = 1 - turn_;
  LocalCall& call = group_->calls(turn_)[static_cast<std::size_t>(rank_)];
  call.operation = operation;
  call.dtype = DType::kUInt8;
  call.op = ReduceOp::kSum;
  call.root = 0;
  call.count = count;
  call.input = nullptr;
  call.in_place = nullptr;
  call.direct = false;
  call.error.clear();
  return call;
}

LocalCall& LocalCommunicator::BeginReduction(LocalOperation operation, std::int64_t count,
                                             DType dtype, ReduceOp op) {
  LocalCall& call = Begin(operation, count);
  call.dtype = dtype;
  call.op = op;
  call.error = CountError(call);
  return call;
}

void LocalCommunicator::Offer(LocalCall& call, const void* input, std::size_t num_bytes) {
  call.direct = num_bytes > LocalGroup::kStagedBytes;
  if (call.direct) {
    call.input = static_cast<const std::byte*>(input);
    return;
  }
  std::byte* const staging = group_->staging(turn_, rank_);
  Copy(staging, input, num_bytes);
  call.input = staging;
}

void LocalCommunicator::Enter() {
  group_->Enter(turn_, rank_);
  const std::vector<LocalCall>& calls = group_->calls(turn_);
  direct_ =
      std::any_of(calls.begin(), calls.end(), [](const LocalCall& call) { return call.direct; });
}

void LocalCommunicator::End() {
  if (direct_) group_->Leave();
}

void LocalCommunicator::PointAt(std::size_t offset) {
  for (int rank = 0; rank < size(); ++rank)
    sources_[static_cast<std::size_t>(rank)] = Peer(rank).input + offset;
}

void LocalCommunicator::Barrier() {
  Begin(LocalOperation::kBarrier, 0);
  Enter();
}

void LocalCommunicator::Broadcast(void* data, std::size_t num_bytes, int root) {
  LocalCall& call = Begin(LocalOperation::kBroadcast, static_cast<std::int64_t>(num_bytes));
  call.root = root;
  call.error = RootError(root, size());
  if (root == rank_) Offer(call, data, num_bytes);
  Enter();
  if (root != rank_) Copy(data, Peer(root).input, num_bytes);
  End();
}

void LocalCommunicator::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  LocalCall& call = BeginReduction(LocalOperation::kAllReduce, count, dtype, op);
  Offer(call, data, BytesOfCount(count, dtype));
  call.in_place = static_cast<std::byte*>(data);
  Enter();
  if (direct_) {
    ReduceSliceInPlace(count, dtype, op);
  } else {
    PointAt(0);
    Reduce(sources_, count, dtype, op, static_cast<std::byte*>(data));
  }
  End();
}

// Each member reduces one slice of all members' data. No other member touches that slice, so the
// sums may overwrite the addends as soon as these are read, and no further barrier separates the
// scattered sums from the gathered result.
void LocalCommunicator::ReduceSliceInPlace(std::int64_t count, DType dtype, ReduceOp op) {
  if (size() == 1) return;
  const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  const auto cut = [&](int rank) {
    return BeginOfPart(num_bytes, kCacheLineBytes, static_cast<std::size_t>(rank),
                       static_cast<std::size_t>(size()));
  };
  const std::size_t end = cut(rank_ + 1);
  alignas(kCacheLineBytes) std::byte sums[kReduceBlockBytes];
  for (std::size_t begin = cut(rank_); begin < end; begin += kReduceBlockBytes) {
    const std::size_t block_bytes = std::min(kReduceBlockBytes, end - begin);
    PointAt(begin);
    Reduce(sources_, static_cast<std::int64_t>(block_bytes / SizeOf(dtype)), dtype, op, sums);
    for (int rank = 0; rank < size(); ++rank)
      std::memcpy(Peer(rank).in_place + begin, sums, block_bytes);
  }
}

void LocalCommunicator::AllGather(const void* input, std::size_t num_bytes, void* output) {
  LocalCall& call = Begin(LocalOperation::kAllGather, static_cast<std::int64_t>(num_bytes));
  Offer(call, input, num_bytes);
  Enter();
  std::byte* target = static_cast<std::byte*>(output);
  for (int rank = 0; rank < size(); ++rank, target += num_bytes)
    Copy(target, rank == rank_ ? input : Peer(rank).input, num_bytes);
  End();
}

void LocalCommunicator::ReduceScatter(const void* input, std::int64_t count, DType dtype,
                                      ReduceOp op, void* output) {
  LocalCall& call = BeginReduction(LocalOperation::kReduceScatter, count, dtype, op);
  const std::size_t num_bytes = BytesOfCount(count, dtype);
  Offer(call, input, num_bytes * static_cast<std::size_t>(size()));
  Enter();
  PointAt(num_bytes * static_cast<std::size_t>(rank_));
  Reduce(sources_, count, dtype, op, static_cast<std::byte*>(output));
  End();
}

void LocalCommunicator::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                                 void* output, std::span<const std::size_t> receive_bytes) {
  const auto members = static_cast<std::size_t>(size());
  LocalCall& call = Begin(LocalOperation::kAllToAll, 0);
  call.send_bytes.assign(send_bytes.begin(), send_bytes.end());
  call.receive_bytes.assign(receive_bytes.begin(), receive_bytes.end());
  call.error = SizesError(members, send_bytes, receive_bytes);
  if (call.error.empty()) Offer(call, input, Total(send_bytes));
  Enter();
  std::byte* target = static_cast<std::byte*>(output);
  for (std::size_t rank = 0; rank < members; ++rank) {
    const LocalCall& peer = Peer(static_cast<int>(rank));
    const std::span<const std::size_t> sent = peer.send_bytes;
    const std::size_t offset = Total(sent.first(static_cast<std::size_t>(rank_)));
    Copy(target, peer.input + offset, receive_bytes[rank]);
    target += receive_bytes[rank];
  }
  End();
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
