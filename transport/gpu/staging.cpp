#include "transport/gpu/staging.hpp"

#include <bit>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "gpu/stream.hpp"

namespace troupe {
namespace {

/// Pinned memory by size, so that it is allocated once: that takes long, and stops the device.
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
    // Handles go on any thread, a driver's among them, where CUDA must not be called.
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
  struct Streams {
    explicit Streams(int device) : to_host(device), to_device(device) {}
    gpu::Stream to_host;
    gpu::Stream to_device;
  };
  /// What is copied right now: kept here and not by the callback of its stream, on whose thread the
  /// last handle to memory of a device must not go.
  struct Copy {
    Buffer here;
    Buffer bytes;
    gpu::Way way;
    std::function<void(Buffer here, const std::string& error)> done;
  };

  State() : thread([this] { Run(); }) {}

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
    streams.clear();
  }

  void Begin(Copy copy) {
    try {
      const gpu::DeviceGuard guard(copy.bytes.device());
      if (copy.way == gpu::Way::kToHost) copy.here = pool->Take(copy.bytes.num_bytes());
      Streams& lane = StreamsOf(copy.bytes.device());
      const gpu::Stream& stream = copy.way == gpu::Way::kToHost ? lane.to_host : lane.to_device;
      Queue(copy, stream);
      const std::uint64_t number = ++last_number;
      open.emplace(number, std::move(copy));
      try {
        stream.OnOutcome([this, number](const std::string& error) {
          Post([this, number, error] { End(number, error); });
        });
      } catch (const std::exception& error) {
        End(number, error.what());
      }
    } catch (const std::exception& error) {
      copy.done({}, error.what());
    }
  }

  static void Queue(const Copy& copy, const gpu::Stream& stream) {
    if (copy.bytes.parts().empty()) return QueuePart(copy, copy.bytes, 0, stream);
    std::size_t offset = 0;
    for (const Buffer& part : copy.bytes.parts()) {
      QueuePart(copy, part, offset, stream);
      offset += part.num_bytes();
    }
  }

  static void QueuePart(const Copy& copy, const Buffer& part, std::size_t offset,
                        const gpu::Stream& stream) {
    std::byte* const here = copy.here.data() + offset;
    if (copy.way == gpu::Way::kToHost) {
      gpu::Copy(stream, here, part.data(), part.num_bytes(), copy.way);
    } else {
      gpu::Copy(stream, part.data(), here, part.num_bytes(), copy.way);
    }
  }

  void End(std::uint64_t number, const std::string& error) {
    Copy copy = std::move(open.extract(number).mapped());
    copy.bytes = Buffer();  // before `done`, which may look at its use_count()
    copy.done(error.empty() ? std::move(copy.here) : Buffer(), error);
  }

  Streams& StreamsOf(int device) {
    auto& lane = streams[device];
    if (lane == nullptr) lane = std::make_unique<Streams>(device);
    return *lane;
  }

  const std::shared_ptr<PinnedPool> pool = std::make_shared<PinnedPool>();
  // Of the thread alone:
  std::map<int, std::unique_ptr<Streams>> streams;
  std::unordered_map<std::uint64_t, Copy> open;
  std::uint64_t last_number = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool ended = false;
  std::thread thread;  // last: it uses the others
};

DeviceStaging::DeviceStaging() : state_(std::make_shared<State>()) {}

DeviceStaging::~DeviceStaging() {
  state_->Post([state = state_.get()] {
    const std::lock_guard lock(state->mutex);
    state->ended = true;
  });
  state_->thread.join();
}

Buffer DeviceStaging::Pinned(std::size_t num_bytes, int device) {
  // CUDA allocates in the context of the thread's device, and would make one for another device.
  const gpu::DeviceGuard guard(device);
  return state_->pool->Take(num_bytes);
}

void DeviceStaging::ToHost(Buffer bytes,
                           std::function<void(Buffer here, const std::string& error)> done) {
  state_->Post([state = state_.get(), bytes = std::move(bytes), done = std::move(done)]() mutable {
    state->Begin({{}, std::move(bytes), gpu::Way::kToHost, std::move(done)});
  });
}

void DeviceStaging::ToDevice(Buffer here, Buffer bytes, Copied done) {
  state_->Post([state = state_.get(), here = std::move(here), bytes = std::move(bytes),
                done = std::move(done)]() mutable {
    state->Begin(
        {std::move(here), std::move(bytes), gpu::Way::kToDevice,
         [done = std::move(done)](const Buffer&, const std::string& error) { done(error); }});
  });
}

}  // namespace troupe
