// A call: every member writes its arguments to its slot and records an event after its earlier
// work. All meet and reach one verdict. Then each queues its part, which waits for the events of
// all, and records a second event. They meet once more, and each stream waits for the parts of all:
// until then the others use its member's memory. The host never waits for a device.
#include "transport/gpu/shared_device.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <utility>
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

// Members' parts of a reduction begin at multiples of this.
constexpr std::size_t kLineBytes = 256;

/// State shared by the members.
struct SharedDevice {
  /// The events of a member's call: one set per turn, like LocalGroup's slots.
  struct Events {
    explicit Events(int device) : ready(device), done(device) {}
    gpu::Event ready;  ///< after the member's work before the call
    gpu::Event done;   ///< after its part of the call
    MemoryKind kind = MemoryKind::kNone;
  };

  explicit SharedDevice(const DeviceMember& member)
      : device(member.stream->device()), group(member.host->size(), member.abort, member.names) {
    for (std::vector<Events>& turn : events)
      for (int rank = 0; rank < group.size(); ++rank) turn.emplace_back(device);
  }

  const int device;
  LocalGroup group;
  std::array<std::vector<Events>, 2> events;
};

class SharedCommunicator final : public Communicator {
 public:
  SharedCommunicator(DeviceMember member, std::shared_ptr<SharedDevice> shared)
      : member_(std::move(member)), shared_(std::move(shared)), rank_(member_.host->rank()) {}
  SharedCommunicator(const SharedCommunicator&) = delete;
  SharedCommunicator& operator=(const SharedCommunicator&) = delete;
  ~SharedCommunicator() override { shared_->group.Depart(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return shared_->group.size(); }
  void Run(const Collective& mine) override;

 private:
  /// Publishes the call and its memory, and waits for those of all members.
  void Meet(const Collective& mine);
  /// The kind of memory of all members' calls. Throws std::logic_error if they differ.
  MemoryKind AgreedKind() const;
  void QueueWithPeers(const Collective& mine);
  void QueuePart(const Collective& mine);
  void ReduceOwnSlice(const GroupCall& call);
  void ReduceScatter(const Collective& mine);

  const gpu::Stream& stream() const { return *member_.stream; }
  void CopyHere(void* to, const void* from, std::size_t num_bytes) {
    if (to != from) gpu::Copy(stream(), to, from, num_bytes, gpu::Way::kOnDevice);
  }
  const LocalCall& Peer(int rank) const {
    return shared_->group.calls(turn_)[static_cast<std::size_t>(rank)];
  }
  std::vector<SharedDevice::Events>& events() const {
    return shared_->events[static_cast<std::size_t>(turn_)];
  }
  SharedDevice::Events& own_events() const { return events()[static_cast<std::size_t>(rank_)]; }

  const DeviceMember member_;
  const std::shared_ptr<SharedDevice> shared_;
  const int rank_;
  int turn_ = 0;
};

void SharedCommunicator::Run(const Collective& mine) {
  try {
    const gpu::DeviceGuard guard(shared_->device);
    Meet(mine);
    switch (AgreedKind()) {
      case MemoryKind::kDevice:
        return QueueWithPeers(mine);
      case MemoryKind::kHost:
        return member_.host->Run(mine);
      default:
        return;
    }
  } catch (const gpu::CudaError& error) {
    RaiseFor(member_, error.what());
    throw;
  }
}

void SharedCommunicator::Meet(const Collective& mine) {
  turn_ = 1 - turn_;
  LocalCall& slot = shared_->group.Publish(turn_, rank_, mine);
  MemoryOf memory{MemoryKind::kDevice, {}};  // of a barrier
  if (mine.call.operation != Operation::kBarrier) {
    memory = LocateMemory(mine.input, InputBytes(mine, rank_, size()), mine.output,
                          OutputBytes(mine, size()), shared_->device);
  }
  if (memory.kind == MemoryKind::kMixed && slot.error.empty())
    slot.error = ToString(mine.call) + ": " + memory.error;
  own_events().kind = memory.kind;
  own_events().ready.Record(stream());
  shared_->group.Enter(turn_, rank_);
}

MemoryKind SharedCommunicator::AgreedKind() const {
  const std::vector<SharedDevice::Events>& all = events();
  const auto with = [&](MemoryKind kind) {
    return std::find_if(all.begin(), all.end(),
                        [&](const SharedDevice::Events& it) { return it.kind == kind; });
  };
  const auto host = with(MemoryKind::kHost);
  const auto device = with(MemoryKind::kDevice);
  if (host == all.end()) return device == all.end() ? MemoryKind::kNone : MemoryKind::kDevice;
  if (device == all.end()) return MemoryKind::kHost;
  throw std::logic_error(member_.names.group + ": " + ToString(Peer(rank_).call) +
                         ": expected one kind of memory, got " +
                         member_.names.MemberName(static_cast<int>(host - all.begin())) +
                         " with memory of the host, " +
                         member_.names.MemberName(static_cast<int>(device - all.begin())) +
                         " with memory of the device");
}

void SharedCommunicator::QueueWithPeers(const Collective& mine) {
  std::exception_ptr error;
  try {
    for (const SharedDevice::Events& peer : events()) stream().Wait(peer.ready);
    QueuePart(mine);
    own_events().done.Record(stream());
  } catch (...) {
    error = std::current_exception();  // meet the others before throwing
  }
  shared_->group.Leave();
  if (error != nullptr) std::rethrow_exception(error);
  // Until the peers are done, they use this member's memory.
  for (const SharedDevice::Events& peer : events()) stream().Wait(peer.done);
}

void SharedCommunicator::QueuePart(const Collective& mine) {
  const std::size_t num_bytes = BytesOfCount(mine.call);
  std::byte* target = mine.output;
  switch (mine.call.operation) {
    case Operation::kBarrier:
      return;
    case Operation::kBroadcast:
      return CopyHere(target, Peer(mine.call.root).input, num_bytes);
    case Operation::kAllReduce:
      return ReduceOwnSlice(mine.call);
    case Operation::kAllGather:
      for (int rank = 0; rank < size(); ++rank, target += num_bytes)
        CopyHere(target, Peer(rank).input, num_bytes);
      return;
    case Operation::kReduceScatter:
      return ReduceScatter(mine);
    case Operation::kAllToAll:
      for (int rank = 0; rank < size(); ++rank) {
        const LocalCall& peer = Peer(rank);
        const std::span<const std::size_t> sent = peer.send_bytes;
        const std::size_t offset = Total(sent.first(static_cast<std::size_t>(rank_)));
        const std::size_t piece_bytes = mine.receive_bytes[static_cast<std::size_t>(rank)];
        CopyHere(target, peer.input + offset, piece_bytes);
        target += piece_bytes;
      }
  }
}

// Each member reduces its slice of the elements, from and to the memory of all members.
void SharedCommunicator::ReduceOwnSlice(const GroupCall& call) {
  if (size() == 1) return;
  const auto cut = [&](int rank) {
    return BeginOfPart(BytesOfCount(call), kLineBytes, static_cast<std::size_t>(rank),
                       static_cast<std::size_t>(size()));
  };
  const std::size_t begin = cut(rank());
  const std::size_t end = cut(rank() + 1);
  if (begin == end) return;
  gpu::Operands operands;
  operands.num_inputs = operands.num_outputs = size();
  for (int rank = 0; rank < size(); ++rank) {
    operands.outputs[rank] = Peer(rank).output + begin;
    operands.inputs[rank] = operands.outputs[rank];
  }
  gpu::Reduce(stream(), operands, static_cast<std::int64_t>((end - begin) / SizeOf(call.dtype)),
              ElementOf(call.dtype), ReductionOf(call.op));
}

void SharedCommunicator::ReduceScatter(const Collective& mine) {
  const std::size_t begin = static_cast<std::size_t>(rank()) * BytesOfCount(mine.call);
  gpu::Operands operands;
  operands.num_inputs = size();
  for (int rank = 0; rank < size(); ++rank) operands.inputs[rank] = Peer(rank).input + begin;
  operands.num_outputs = 1;
  operands.outputs[0] = mine.output;
  gpu::Reduce(stream(), operands, mine.call.count, ElementOf(mine.call.dtype),
              ReductionOf(mine.call.op));
}

}  // namespace

std::unique_ptr<Communicator> JoinSharedDevice(DeviceMember member) {
  if (member.host->size() > gpu::Operands::kMost) {
    throw std::invalid_argument(member.names.group + ": expected at most " +
                                std::to_string(gpu::Operands::kMost) +
                                " ranks on one device, got " + std::to_string(member.host->size()));
  }
  // All members are in one process: the first makes the shared object and broadcasts its address,
  // which stays valid until all have copied the pointer.
  std::shared_ptr<SharedDevice> shared;
  const std::shared_ptr<SharedDevice>* made = &shared;
  if (member.host->rank() == 0) shared = std::make_shared<SharedDevice>(member);
  member.host->Broadcast(&made, sizeof made, 0);  // NOLINT(bugprone-sizeof-expression)
  if (member.host->rank() != 0) shared = *made;
  member.host->Barrier();
  return std::make_unique<SharedCommunicator>(std::move(member), std::move(shared));
}

}  // namespace troupe
