// Where the calls of ranks on one device meet, and what orders their streams around them.
//
// A call: every member has its arguments in its slot and an event behind what it had queued before;
// all meet, and come to one verdict. Then each queues its part, which waits for the events of all,
// with an event behind it; they meet once more, and whatever a member queues next waits for the
// parts of all: until then its memory is theirs. The host waits for nobody's device.
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

/// What the members share.
struct SharedDevice {
  /// What a member's calls meet with: one set per turn, as LocalGroup's slots.
  struct Events {
    explicit Events(int device) : ready(device), done(device) {}
    gpu::Event ready;  ///< behind what the member had queued before the call
    gpu::Event done;   ///< behind its part of the call
    MemoryKind kind = MemoryKind::kNone;
  };

  SharedDevice(int size, const DeviceMember& member);

  const int device;
  LocalGroup group;
  std::array<std::vector<Events>, 2> events;
};

/// One member's side of the meetings.
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

  /// This member's slot for its next call, emptied.
  LocalCall& Begin(LocalOperation operation, std::int64_t count);
  /// Begin for the operations that reduce; an illegal count is recorded as the call's error.
  LocalCall& BeginReduction(LocalOperation operation, std::int64_t count, DType dtype, ReduceOp op);
  /// The call with its arguments in place, on memory that `locate` finds: `on_device` queues this
  /// member's part, `on_host` makes the call where all have memory of the host. Throws as
  /// LocalGroup::Enter; std::logic_error where some have the one and some the other; CudaError.
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
