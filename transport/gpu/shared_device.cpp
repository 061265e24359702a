#include "transport/gpu/shared_device.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "gpu/copies.hpp"
#include "gpu/kernels/device.hpp"
#include "transport/collective_arguments.hpp"
#include "transport/gpu/elements.hpp"
#include "transport/gpu/shared_meeting.hpp"

namespace troupe {
namespace {

// Members' parts of a reduction begin at multiples of this.
constexpr std::size_t kLineBytes = 256;

class SharedCommunicator final : public Communicator {
 public:
  SharedCommunicator(DeviceMember member, std::shared_ptr<SharedDevice> shared)
      : meeting_(std::move(member), std::move(shared)) {}

  int rank() const override { return meeting_.rank(); }
  int size() const override { return meeting_.size(); }

  void Barrier() override;
  void Broadcast(void* data, std::size_t num_bytes, int root) override;
  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override;
  void AllGather(const void* input, std::size_t num_bytes, void* output) override;
  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override;
  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override;

 private:
  const DeviceMember& member() const { return meeting_.member(); }
  void CopyHere(void* to, const void* from, std::size_t num_bytes) {
    if (to != from) gpu::Copy(*member().stream, to, from, num_bytes, gpu::Way::kOnDevice);
  }
  void ReduceOwnSlice(std::int64_t count, DType dtype, ReduceOp op);

  SharedMeeting meeting_;
};

void SharedCommunicator::Barrier() {
  meeting_.Begin(LocalOperation::kBarrier, 0);
  meeting_.Run([] { return MemoryOf{MemoryKind::kDevice, {}}; }, [] {}, [] {});
}

void SharedCommunicator::Broadcast(void* data, std::size_t num_bytes, int root) {
  LocalCall& call =
      meeting_.Begin(LocalOperation::kBroadcast, static_cast<std::int64_t>(num_bytes));
  call.root = root;
  call.error = RootError(root, size());
  call.input = static_cast<const std::byte*>(data);
  meeting_.Run([&] { return LocateMemory(data, num_bytes, meeting_.device()); },
               [&] { CopyHere(data, meeting_.Peer(root).input, num_bytes); },
               [&] { member().host->Broadcast(data, num_bytes, root); });
}

void SharedCommunicator::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  LocalCall& call = meeting_.BeginReduction(LocalOperation::kAllReduce, count, dtype, op);
  const std::size_t bytes = BytesOfCount(count, dtype);
  call.in_place = static_cast<std::byte*>(data);
  meeting_.Run([&] { return LocateMemory(data, bytes, meeting_.device()); },
               [&] { ReduceOwnSlice(count, dtype, op); },
               [&] { member().host->AllReduce(data, count, dtype, op); });
}

// Each member reduces its slice of the elements, from and to the memory of all members.
void SharedCommunicator::ReduceOwnSlice(std::int64_t count, DType dtype, ReduceOp op) {
  if (size() == 1) return;
  const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  const auto cut = [&](int rank) {
    return BeginOfPart(num_bytes, kLineBytes, static_cast<std::size_t>(rank),
                       static_cast<std::size_t>(size()));
  };
  const std::size_t begin = cut(rank());
  const std::size_t end = cut(rank() + 1);
  if (begin == end) return;
  gpu::Operands operands;
  operands.num_inputs = operands.num_outputs = size();
  for (int rank = 0; rank < size(); ++rank) {
    operands.outputs[rank] = meeting_.Peer(rank).in_place + begin;
    operands.inputs[rank] = operands.outputs[rank];
  }
  gpu::Reduce(*member().stream, operands, static_cast<std::int64_t>((end - begin) / SizeOf(dtype)),
              ElementOf(dtype), ReductionOf(op));
}

void SharedCommunicator::AllGather(const void* input, std::size_t num_bytes, void* output) {
  LocalCall& call =
      meeting_.Begin(LocalOperation::kAllGather, static_cast<std::int64_t>(num_bytes));
  call.input = static_cast<const std::byte*>(input);
  meeting_.Run([&] { return LocateMemory(input, num_bytes, output, num_bytes, meeting_.device()); },
               [&] {
                 auto* target = static_cast<std::byte*>(output);
                 for (int rank = 0; rank < size(); ++rank, target += num_bytes)
                   CopyHere(target, meeting_.Peer(rank).input, num_bytes);
               },
               [&] { member().host->AllGather(input, num_bytes, output); });
}

void SharedCommunicator::ReduceScatter(const void* input, std::int64_t count, DType dtype,
                                       ReduceOp op, void* output) {
  LocalCall& call = meeting_.BeginReduction(LocalOperation::kReduceScatter, count, dtype, op);
  const std::size_t bytes = BytesOfCount(count, dtype);
  const auto own = static_cast<std::size_t>(rank());
  call.input = static_cast<const std::byte*>(input);
  meeting_.Run([&] { return LocateMemory(input, bytes, output, bytes, meeting_.device()); },
               [&] {
                 gpu::Operands operands;
                 operands.num_inputs = size();
                 for (int rank = 0; rank < size(); ++rank)
                   operands.inputs[rank] = meeting_.Peer(rank).input + own * bytes;
                 operands.num_outputs = 1;
                 operands.outputs[0] = static_cast<std::byte*>(output);
                 gpu::Reduce(*member().stream, operands, count, ElementOf(dtype), ReductionOf(op));
               },
               [&] { member().host->ReduceScatter(input, count, dtype, op, output); });
}

void SharedCommunicator::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                                  void* output, std::span<const std::size_t> receive_bytes) {
  const auto members = static_cast<std::size_t>(size());
  const auto own = static_cast<std::size_t>(rank());
  LocalCall& call = meeting_.Begin(LocalOperation::kAllToAll, 0);
  call.send_bytes.assign(send_bytes.begin(), send_bytes.end());
  call.receive_bytes.assign(receive_bytes.begin(), receive_bytes.end());
  call.error = SizesError(members, send_bytes, receive_bytes);
  call.input = static_cast<const std::byte*>(input);
  meeting_.Run(
      [&] {
        return LocateMemory(input, Total(send_bytes), output, Total(receive_bytes),
                            meeting_.device());
      },
      [&] {
        auto* target = static_cast<std::byte*>(output);
        for (std::size_t rank = 0; rank < members; ++rank) {
          const LocalCall& peer = meeting_.Peer(static_cast<int>(rank));
          const std::span<const std::size_t> sent = peer.send_bytes;
          CopyHere(target, peer.input + Total(sent.first(own)), receive_bytes[rank]);
          target += receive_bytes[rank];
        }
      },
      [&] { member().host->AllToAll(input, send_bytes, output, receive_bytes); });
}

}  // namespace

std::unique_ptr<Communicator> JoinSharedDevice(DeviceMember member) {
  if (member.host->size() > gpu::Operands::kMost)
    throw std::invalid_argument(member.names.group + ": expected at most " +
                                std::to_string(gpu::Operands::kMost) +
                                " ranks on one device, got " + std::to_string(member.host->size()));
  // All members are in one process: the first makes the shared object and broadcasts its address,
  // which stays valid until all have copied the pointer.
  std::shared_ptr<SharedDevice> shared;
  const std::shared_ptr<SharedDevice>* made = &shared;
  if (member.host->rank() == 0)
    shared = std::make_shared<SharedDevice>(member.host->size(), member);
  member.host->Broadcast(&made, sizeof made, 0);
  if (member.host->rank() != 0) shared = *made;
  member.host->Barrier();
  return std::make_unique<SharedCommunicator>(std::move(member), std::move(shared));
}

}  // namespace troupe
