#include "transport/gpu/staging.hpp"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "gpu/stream.hpp"
#include "transport/gpu/copy_check.hpp"

namespace troupe {
namespace {

/// Pinned memory by size, for reuse: allocating it is slow and stops the device.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  Buffer Take(std::size_t num_bytes) {
    const std::size_t size = std::max(kSmallest, std::bit_ceil(num_bytes));
    std::shared_ptr<void> memory;
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::shared_ptr<void>>& free = free_[size];
      if (!free.empty()) {
        memory = std::move(free.back());
        free.pop_back();
      }
    }
    if (memory == nullptr) memory = gpu::AllocatePinned(size);
    void* const data = memory.get();
    // Handles are destroyed on any thread, including a driver's, where CUDA must not be called.
    std::shared_ptr<void> lent(data, [pool = shared_from_this(), memory, size](void*) mutable {
      const std::lock_guard lock(pool->mutex_);
      pool->free_[size].push_back(std::move(memory));
    });
    return Buffer::Wrap(std::move(lent), data, {static_cast<std::int64_t>(num_bytes)},
                        DType::kUInt8);
  }

 private:
  static constexpr std::size_t kSmallest = std::size_t{64} << 10;

  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::shared_ptr<void>>> free_;
};

}  // namespace

struct DeviceStaging::State {
  struct Lane {
    Lane(int device, CheckCopies check) : stream(device) {
      if (check == CheckCopies::kYes) spare = gpu::AllocateOnDevice(device, CopyCheck::kSpareBytes);
    }
    gpu::Stream stream;
    std::shared_ptr<void> spare;  // of checks; ordered by the stream
  };
  /// A copy in progress. Kept here, not in the callback of its stream: the last handle to device
  /// memory must not be destroyed on the callback's thread.
  struct Copy {
    Buffer pinned;
    Buffer bytes;
    gpu::Way way;
    std::function<void(Buffer pinned, const std::string& error)> done;
    std::size_t begin;                     // offset that errors refer to
    int num_open = 0;                      // streams that have not completed
    std::string error = {};                // the first one
    std::map<int, CopyCheck> checks = {};  // by device; empty unless copies are checked
  };

  explicit State(CheckCopies how) : check(how), thread([this] { Run(); }) {}

  void Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }

  void Run() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return !tasks.empty() || (ended && open.empty()); });
        if (tasks.empty()) break;
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task();
    }
    lanes.clear();
  }

  void Begin(Copy begun) {
    const std::uint64_t number = ++last_number;
    Copy& copy = open.emplace(number, std::move(begun)).first->second;
    try {
      if (copy.way == gpu::Way::kToHost) {
        const gpu::DeviceGuard guard(copy.bytes.device());
        copy.pinned = pool->Take(copy.bytes.num_bytes());
      }
      std::set<int> devices = {copy.bytes.device()};
      ForEachPart(copy, [&](const Buffer& part, std::size_t offset) {
        if (!part.on_host()) {
          devices.insert(part.device());
        } else if (copy.way == gpu::Way::kToHost) {
          std::memcpy(copy.pinned.data() + offset, part.data(), part.num_bytes());
        } else {
          std::memcpy(part.data(), copy.pinned.data() + offset, part.num_bytes());
        }
      });
      for (const int device : devices) Queue(number, copy, device);
    } catch (const std::exception& error) {
      if (copy.error.empty()) copy.error = error.what();
    }
    if (copy.num_open == 0) Finish(number);
  }

  /// Queues the part of a copy that is on `device`, and its check: before a copy from the device,
  /// after a copy to it.
  void Queue(std::uint64_t number, Copy& copy, int device) {
    const gpu::DeviceGuard guard(device);
    const bool to_host = copy.way == gpu::Way::kToHost;
    const Lane& lane = LaneOf(device, copy.way);
    try {
      if (check == CheckCopies::kYes && to_host) QueueCheck(copy, lane);
      ForEachPart(copy, [&](const Buffer& part, std::size_t offset) {
        if (part.device() != device) return;
        std::byte* const on_host = copy.pinned.data() + offset;
        std::byte* const on_device = part.data();
        gpu::Copy(lane.stream, to_host ? on_host : on_device, to_host ? on_device : on_host,
                  part.num_bytes(), copy.way);
      });
      if (check == CheckCopies::kYes && !to_host) QueueCheck(copy, lane);
    } catch (const std::exception& error) {
      if (copy.error.empty()) copy.error = error.what();  // reported when the queued work is done
    }
    lane.stream.OnOutcome(
        [this, number](const std::string& error) { Post([=, this] { End(number, error); }); });
    ++copy.num_open;
  }

  void QueueCheck(Copy& copy, const Lane& lane) {
    const int device = lane.stream.device();
    CopyCheck& sums = copy.checks[device];
    ForEachPart(copy, [&](const Buffer& part, std::size_t offset) {
      if (part.device() == device)
        sums.Add(part.data(), copy.pinned.data() + offset, part.num_bytes(), copy.begin + offset);
    });
    sums.Queue(lane.stream, static_cast<std::uint64_t*>(lane.spare.get()),
               [this](std::size_t num_bytes) { return pool->Take(num_bytes); });
  }

  /// Calls `visit(part, offset)` for each part of a copy's bytes, or for all of them.
  template <class Visit>
  static void ForEachPart(const Copy& copy, const Visit& visit) {
    if (copy.bytes.parts().empty()) return visit(copy.bytes, 0);
    std::size_t offset = 0;
    for (const Buffer& part : copy.bytes.parts()) {
      visit(part, offset);
      offset += part.num_bytes();
    }
  }

  /// One of a copy's streams has completed.
  void End(std::uint64_t number, const std::string& error) {
    Copy& copy = open.at(number);
    if (copy.error.empty()) copy.error = error;
    if (--copy.num_open == 0) Finish(number);
  }

  void Finish(std::uint64_t number) {
    Copy copy = std::move(open.extract(number).mapped());
    for (const auto& [device, sums] : copy.checks)
      if (copy.error.empty()) copy.error = sums.Compare(copy.way, device);
    copy.checks.clear();
    copy.bytes = Buffer();  // before `done`, which may look at its use_count()
    copy.done(copy.error.empty() ? std::move(copy.pinned) : Buffer(), copy.error);
  }

  const Lane& LaneOf(int device, gpu::Way way) {
    auto& lane = lanes[{device, way}];
    if (lane == nullptr) lane = std::make_unique<Lane>(device, check);
    return *lane;
  }

  const CheckCopies check;
  const std::shared_ptr<PinnedPool> pool = std::make_shared<PinnedPool>();
  // Used by the thread only.
  std::map<std::pair<int, gpu::Way>, std::unique_ptr<Lane>> lanes;
  std::unordered_map<std::uint64_t, Copy> open;
  std::uint64_t last_number = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool ended = false;
  std::thread thread;  // last: it uses the others
};

DeviceStaging::DeviceStaging(CheckCopies check) : state_(std::make_shared<State>(check)) {}

DeviceStaging::~DeviceStaging() {
  state_->Post([state = state_.get()] {
    const std::lock_guard lock(state->mutex);
    state->ended = true;
  });
  state_->thread.join();
}

bool DeviceStaging::checks_copies() const { return state_->check == CheckCopies::kYes; }

Buffer DeviceStaging::Pinned(std::size_t num_bytes, int device) {
  // CUDA allocates in the context of the current device, and would create one for another device.
  const gpu::DeviceGuard guard(device);
  return state_->pool->Take(num_bytes);
}

void DeviceStaging::ToHost(Buffer bytes,
                           std::function<void(Buffer pinned, const std::string& error)> done,
                           std::size_t begin) {
  state_->Post(
      [state = state_.get(), bytes = std::move(bytes), done = std::move(done), begin]() mutable {
        state->Begin({{}, std::move(bytes), gpu::Way::kToHost, std::move(done), begin});
      });
}

void DeviceStaging::ToDevice(Buffer pinned, Buffer bytes, Copied done, std::size_t begin) {
  state_->Post([state = state_.get(), pinned = std::move(pinned), bytes = std::move(bytes),
                done = std::move(done), begin]() mutable {
    state->Begin(
        {std::move(pinned), std::move(bytes), gpu::Way::kToDevice,
         [done = std::move(done)](const Buffer&, const std::string& error) { done(error); },
         begin});
  });
}

}  // namespace troupe
