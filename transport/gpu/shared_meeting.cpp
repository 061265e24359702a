#include "transport/gpu/shared_meeting.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "transport/collective_arguments.hpp"

namespace troupe {

SharedDevice::SharedDevice(int size, const DeviceMember& member)
    : device(member.stream->device()), group(size, member.abort, member.names) {
  for (std::vector<Events>& turn : events)
    for (int rank = 0; rank < size; ++rank) turn.emplace_back(device);
}

SharedMeeting::SharedMeeting(DeviceMember member, std::shared_ptr<SharedDevice> shared)
    : member_(std::move(member)), shared_(std::move(shared)), rank_(member_.host->rank()) {}

LocalCall& SharedMeeting::Begin(LocalOperation operation, std::int64_t count) {
  turn_ = 1 - turn_;
  LocalCall& call = shared_->group.calls(turn_)[static_cast<std::size_t>(rank_)];
  call = LocalCall{};
  call.operation = operation;
  call.count = count;
  return call;
}

LocalCall& SharedMeeting::BeginReduction(LocalOperation operation, std::int64_t count, DType dtype,
                                         ReduceOp op) {
  LocalCall& call = Begin(operation, count);
  call.dtype = dtype;
  call.op = op;
  call.error = CountError(call);
  return call;
}

void SharedMeeting::Meet(const MemoryOf& memory) {
  SharedDevice::Events& mine = events()[static_cast<std::size_t>(rank_)];
  LocalCall& call = shared_->group.calls(turn_)[static_cast<std::size_t>(rank_)];
  if (memory.kind == MemoryKind::kMixed && call.error.empty())
    call.error = ToString(call) + ": " + memory.error;
  mine.kind = memory.kind;
  mine.ready.Record(*member_.stream);
  shared_->group.Enter(turn_, rank_);
}

MemoryKind SharedMeeting::AgreedKind() const {
  const std::vector<SharedDevice::Events>& all = events();
  const auto with = [&](MemoryKind kind) {
    return std::find_if(all.begin(), all.end(),
                        [&](const SharedDevice::Events& it) { return it.kind == kind; });
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

void SharedMeeting::QueuePart(const Part& on_device) {
  std::exception_ptr error;
  try {
    for (const SharedDevice::Events& peer : events()) member_.stream->Wait(peer.ready);
    on_device();
    events()[static_cast<std::size_t>(rank_)].done.Record(*member_.stream);
  } catch (...) {
    error = std::current_exception();  // meet the others before throwing
  }
  shared_->group.Leave();
  if (error != nullptr) std::rethrow_exception(error);
  // Until the peers are done, they use this member's memory.
  for (const SharedDevice::Events& peer : events()) member_.stream->Wait(peer.done);
}

void SharedMeeting::Run(const std::function<MemoryOf()>& locate, const Part& on_device,
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

}  // namespace troupe
