// Synchronises the calls of ranks on one device and orders their streams.
//
// A call: every member writes its arguments to its slot and records an event after its earlier
// work. All meet and reach one verdict. Then each queues its part, which waits for the events of
// all, and records a second event. They meet once more, and each stream waits for the parts of all:
// until then the others use its member's memory. The host never waits for a device.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/stream.hpp"
#include "transport/gpu/device_member.hpp"
#include "transport/gpu/memory_kind.hpp"
#include "transport/local_group.hpp"

namespace troupe {

/// State shared by the members.
struct SharedDevice {
  /// The events of a member's call: one set per turn, like LocalGroup's slots.
  struct Events {
    explicit Events(int device) : ready(device), done(device) {}
    gpu::Event ready;  ///< after the member's work before the call
    gpu::Event done;   ///< after its part of the call
    MemoryKind kind = MemoryKind::kNone;
  };

  SharedDevice(int size, const DeviceMember& member);

  const int device;
  LocalGroup group;
  std::array<std::vector<Events>, 2> events;
};

/// One member's side of the calls.
class SharedMeeting {
 public:
  using Part = std::function<void()>;

  SharedMeeting(DeviceMember member, std::shared_ptr<SharedDevice> shared);
  SharedMeeting(const SharedMeeting&) = delete;
  SharedMeeting& operator=(const SharedMeeting&) = delete;
  ~SharedMeeting() { shared_->group.Depart(rank_); }

  const DeviceMember& member() const { return member_; }
  int rank() const { return rank_; }
  int size() const { return shared_->group.size(); }
  int device() const { return shared_->device; }

  /// Returns this member's cleared slot for its next call.
  LocalCall& Begin(LocalOperation operation, std::int64_t count);
  /// Begin for the operations that reduce; an illegal count becomes the call's error.
  LocalCall& BeginReduction(LocalOperation operation, std::int64_t count, DType dtype, ReduceOp op);
  /// Runs the call whose arguments are in the slot, on memory that `locate` finds. `on_device`
  /// queues this member's part; `on_host` performs the call if all members have host memory. Throws
  /// the errors of LocalGroup::Enter; std::logic_error if some have host and some device memory;
  /// CudaError.
  void Run(const std::function<MemoryOf()>& locate, const Part& on_device, const Part& on_host);
  /// The call of a member, while a part of it is queued.
  const LocalCall& Peer(int rank) const {
    return shared_->group.calls(turn_)[static_cast<std::size_t>(rank)];
  }

 private:
  void Meet(const MemoryOf& memory);
  void QueuePart(const Part& on_device);
  MemoryKind AgreedKind() const;
  std::vector<SharedDevice::Events>& events() const {
    return shared_->events[static_cast<std::size_t>(turn_)];
  }

  const DeviceMember member_;
  const std::shared_ptr<SharedDevice> shared_;
  const int rank_;
  int turn_ = 0;
};

}  // namespace troupe
