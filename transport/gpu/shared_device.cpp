#include "transport/gpu/shared_device.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "gpu/check.hpp"
#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "gpu/kernels/device.hpp"
#include "transport/collective_arguments.hpp"
#include "transport/gpu/elements.hpp"
#include "transport/gpu/memory_kind.hpp"
#include "transport/local_group.hpp"

namespace troupe {
namespace {

// Where members' parts of a reduction begin, but for the last lines of memory.
constexpr std::size_t kLineBytes = 256;

/// What a member's calls meet with: one set per turn, as LocalGroup's slots.
struct Meeting {
  explicit Meeting(int device) : ready(device), done(device) {}
  gpu::Event ready;  // behind what the member had queued before the call
  gpu::Event done;   // behind its part of the call
  MemoryKind kind = MemoryKind::kNone;
};

/// What the members share.
struct SharedDevice {
  SharedDevice(int size, const DeviceMember& member)
      : device(member.stream->device()), group(size, member.abort, member.names) {
    for (std::vector<Meeting>& turn : meetings)
      for (int rank = 0; rank < size; ++rank) turn.emplace_back(device);
  }

  const int device;
  LocalGroup group;
  std::array<std::vector<Meeting>, 2> meetings;
};

std::size_t Total(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

class SharedCommunicator final : public Communicator {
 public:
  SharedCommunicator(DeviceMember member, std::shared_ptr<SharedDevice> shared)
      : member_(std::move(member)), shared_(std::move(shared)), rank_(member_.host->rank()) {}
  SharedCommunicator(const SharedCommunicator&) = delete;
  SharedCommunicator& operator=(const SharedCommunicator&) = delete;
  ~SharedCommunicator() override { shared_->group.Depart(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return shared_->group.size(); }

  void Barrier() override;
  void Broadcast(void* data, std::size_t num_bytes, int root) override;
  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override;
  void AllGather(const void* input, std::size_t num_bytes, void* output) override;
  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override;
  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override;

 private:
  using Part = std::function<void()>;

  LocalCall& Begin(LocalOperation operation, std::int64_t count);
  LocalCall& BeginReduction(LocalOperation operation, std::int64_t count, DType dtype, ReduceOp op);
  /// The call with its arguments in place, on memory that `locate` finds: `on_device` queues this
  /// member's part, `on_host` makes the call where all have memory of the host.
  void Run(const std::function<MemoryOf()>& locate, const Part& on_device, const Part& on_host);
  void Meet(const MemoryOf& memory);
  void QueuePart(const Part& on_device);
  MemoryKind AgreedKind() const;
  const LocalCall& Peer(int rank) const {
    return shared_->group.calls(turn_)[static_cast<std::size_t>(rank)];
  }
  std::vector<Meeting>& meetings() { return shared_->meetings[static_cast<std::size_t>(turn_)]; }
  void CopyHere(void* to, const void* from, std::size_t num_bytes) {
    if (to != from) gpu::Copy(*member_.stream, to, from, num_bytes, gpu::Way::kOnDevice);
  }
  void ReduceOwnSlice(std::int64_t count, DType dtype, ReduceOp op);

  const DeviceMember member_;
  const std::shared_ptr<SharedDevice> shared_;
  const int rank_;
  int turn_ = 0;
};

LocalCall& SharedCommunicator::Begin(LocalOperation operation, std::int64_t count) {
  turn_ = 1 - turn_;
  LocalCall& call = shared_->group.calls(turn_)[static_cast<std::size_t>(rank_)];
  call = LocalCall{};
  call.operation = operation;
  call.count = count;
  return call;
}

LocalCall& SharedCommunicator::BeginReduction(LocalOperation operation, std::int64_t count,
                                              DType dtype, ReduceOp op) {
  LocalCall& call = Begin(operation, count);
  call.dtype = dtype;
  call.op = op;
  if (count < 0) call.error = ToString(call) + ": expected a count of at least 0";
  return call;
}

void SharedCommunicator::Meet(const MemoryOf& memory) {
  Meeting& mine = meetings()[static_cast<std::size_t>(rank_)];
  LocalCall& call = shared_->group.calls(turn_)[static_cast<std::size_t>(rank_)];
  if (memory.kind == MemoryKind::kMixed && call.error.empty())
    call.error = ToString(call) + ": " + memory.error;
  mine.kind = memory.kind;
  mine.ready.Record(*member_.stream);
  shared_->group.Enter(turn_, rank_);
}

MemoryKind SharedCommunicator::AgreedKind() const {
  const std::vector<Meeting>& all = shared_->meetings[static_cast<std::size_t>(turn_)];
  const auto with = [&](MemoryKind kind) {
    return std::find_if(all.begin(), all.end(), [&](const Meeting& it) { return it.kind == kind; });
  };
  const auto host = with(MemoryKind::kHost);
  const auto device = with(MemoryKind::kDevice);
  if (host == all.end()) return device == all.end() ? MemoryKind::kNone : MemoryKind::kDevice;
  if (device == all.end()) return MemoryKind::kHost;
  throw std::logic_error(member_.names.group + ": " + ToString(Peer(rank_)) +
                         ": expected one kind of memory, got " +
                         member_.names.MemberName(static_cast<int>(host - all.begin())) +
                         " with memory of the host, " +
                         member_.names.MemberName(static_cast<int>(device - all.begin())) +
                         " with memory of the device");
}

void SharedCommunicator::QueuePart(const Part& on_device) {
  std::exception_ptr error;
  try {
    for (const Meeting& peer : meetings()) member_.stream->Wait(peer.ready);
    on_device();
    meetings()[static_cast<std::size_t>(rank_)].done.Record(*member_.stream);
  } catch (...) {
    error = std::current_exception();  // the others must be met first
  }
  shared_->group.Leave();
  if (error != nullptr) std::rethrow_exception(error);
  // Until peers are done, this member's memory is theirs.
  for (const Meeting& peer : meetings()) member_.stream->Wait(peer.done);
}

void SharedCommunicator::Run(const std::function<MemoryOf()>& locate, const Part& on_device,
                             const Part& on_host) {
  try {
    const gpu::DeviceGuard guard(shared_->device);
    Meet(locate());
    switch (AgreedKind()) {
      case MemoryKind::kDevice:
        return QueuePart(on_device);
      case MemoryKind::kHost:
        return on_host();
      default:
        return;
    }
  } catch (const gpu::CudaError& error) {
    RaiseFor(member_, error.what());
    throw;
  }
}

void SharedCommunicator::Barrier() {
  Begin(LocalOperation::kBarrier, 0);
  Run([] { return MemoryOf{MemoryKind::kDevice, {}}; }, [] {}, [] {});
}

void SharedCommunicator::Broadcast(void* data, std::size_t num_bytes, int root) {
  LocalCall& call = Begin(LocalOperation::kBroadcast, static_cast<std::int64_t>(num_bytes));
  call.root = root;
  if (root < 0 || root >= size())
    call.error = "broadcast: expected a root in [0, " + std::to_string(size()) + "), got " +
                 std::to_string(root);
  call.input = static_cast<const std::byte*>(data);
  Run([&] { return LocateMemory(data, num_bytes, shared_->device); },
      [&] { CopyHere(data, Peer(root).input, num_bytes); },
      [&] { member_.host->Broadcast(data, num_bytes, root); });
}

void SharedCommunicator::AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) {
  LocalCall& call = BeginReduction(LocalOperation::kAllReduce, count, dtype, op);
  const std::size_t bytes =
      call.error.empty() ? static_cast<std::size_t>(count) * SizeOf(dtype) : 0;
  call.in_place = static_cast<std::byte*>(data);
  Run([&] { return LocateMemory(data, bytes, shared_->device); },
      [&] { ReduceOwnSlice(count, dtype, op); },
      [&] { member_.host->AllReduce(data, count, dtype, op); });
}

// Each member reduces its slice of the elements, out of and into the memory of all.
void SharedCommunicator::ReduceOwnSlice(std::int64_t count, DType dtype, ReduceOp op) {
  if (size() == 1) return;
  const std::size_t num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  const std::size_t lines = (num_bytes + kLineBytes - 1) / kLineBytes;
  const auto cut = [&](int rank) {
    return std::min(num_bytes, lines * static_cast<std::size_t>(rank) /
                                   static_cast<std::size_t>(size()) * kLineBytes);
  };
  const std::size_t begin = cut(rank_);
  const std::size_t end = cut(rank_ + 1);
  if (begin == end) return;
  gpu::Operands operands;
  operands.num_inputs = operands.num_outputs = size();
  for (int rank = 0; rank < size(); ++rank) {
    operands.outputs[rank] = Peer(rank).in_place + begin;
    operands.inputs[rank] = operands.outputs[rank];
  }
  gpu::Reduce(*member_.stream, operands, static_cast<std::int64_t>((end - begin) / SizeOf(dtype)),
              ElementOf(dtype), ReductionOf(op));
}

void SharedCommunicator::AllGather(const void* input, std::size_t num_bytes, void* output) {
  LocalCall& call = Begin(LocalOperation::kAllGather, static_cast<std::int64_t>(num_bytes));
  call.input = static_cast<const std::byte*>(input);
  Run([&] { return LocateMemory(input, num_bytes, output, num_bytes, shared_->device); },
      [&] {
        auto* target = static_cast<std::byte*>(output);
        for (int rank = 0; rank < size(); ++rank, target += num_bytes)
          CopyHere(target, Peer(rank).input, num_bytes);
      },
      [&] { member_.host->AllGather(input, num_bytes, output); });
}

void SharedCommunicator::ReduceScatter(const void* input, std::int64_t count, DType dtype,
                                       ReduceOp op, void* output) {
  LocalCall& call = BeginReduction(LocalOperation::kReduceScatter, count, dtype, op);
  const std::size_t bytes =
      call.error.empty() ? static_cast<std::size_t>(count) * SizeOf(dtype) : 0;
  call.input = static_cast<const std::byte*>(input);
  Run([&] { return LocateMemory(input, bytes, output, bytes, shared_->device); },
      [&] {
        gpu::Operands operands;
        operands.num_inputs = size();
        for (int rank = 0; rank < size(); ++rank)
          operands.inputs[rank] = Peer(rank).input + static_cast<std::size_t>(rank_) * bytes;
        operands.num_outputs = 1;
        operands.outputs[0] = static_cast<std::byte*>(output);
        gpu::Reduce(*member_.stream, operands, count, ElementOf(dtype), ReductionOf(op));
      },
      [&] { member_.host->ReduceScatter(input, count, dtype, op, output); });
}

void SharedCommunicator::AllToAll(const void* input, std::span<const std::size_t> send_bytes,
                                  void* output, std::span<const std::size_t> receive_bytes) {
  const auto members = static_cast<std::size_t>(size());
  LocalCall& call = Begin(LocalOperation::kAllToAll, 0);
  call.send_bytes.assign(send_bytes.begin(), send_bytes.end());
  call.receive_bytes.assign(receive_bytes.begin(), receive_bytes.end());
  call.error = SizeError("send sizes", members, send_bytes.size());
  if (call.error.empty()) call.error = SizeError("receive sizes", members, receive_bytes.size());
  call.input = static_cast<const std::byte*>(input);
  Run(
      [&] {
        return LocateMemory(input, Total(send_bytes), output, Total(receive_bytes),
                            shared_->device);
      },
      [&] {
        auto* target = static_cast<std::byte*>(output);
        for (std::size_t rank = 0; rank < members; ++rank) {
          const LocalCall& peer = Peer(static_cast<int>(rank));
          const std::span<const std::size_t> sent = peer.send_bytes;
          CopyHere(target, peer.input + Total(sent.first(static_cast<std::size_t>(rank_))),
                   receive_bytes[rank]);
          target += receive_bytes[rank];
        }
      },
      [&] { member_.host->AllToAll(input, send_bytes, output, receive_bytes); });
}

}  // namespace

std::unique_ptr<Communicator> JoinSharedDevice(DeviceMember member) {
  if (member.host->size() > gpu::Operands::kMost)
    throw std::invalid_argument(member.names.group + ": expected at most " +
                                std::to_string(gpu::Operands::kMost) +
                                " ranks on one device, got " + std::to_string(member.host->size()));
  // One process: what the first member has made is known to the others by its address, which it
  // keeps until all have taken their share.
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
