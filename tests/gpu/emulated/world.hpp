// What the emulated runtime is made of. machine.hpp says what it does.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/gpu/emulated/machine.hpp"

namespace troupe::emulated {

/// One cudaEventRecord: passed when its stream has come to it.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool passed = false;
  std::chrono::steady_clock::time_point time;

  void Pass();
  void Wait();
};

/// A piece of work of a stream, in its turn.
struct Work {
  enum class When {
    kWhole,       ///< not after a failure of the device
    kUsesMemory,  ///< likewise, and a failed device gives no memory back while it runs
    kAlways
  };
  When when = When::kWhole;
  std::function<void()> run;
};

}  // namespace troupe::emulated

struct CUstream_st {
  CUstream_st(int on, unsigned seed);

  const int device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<troupe::emulated::Work> waiting;
  std::size_t num_queued = 0;
  std::size_t num_run = 0;
  bool ended = false;
  std::mt19937 random;
  std::thread thread;

  /// Its place, for Reach.
  std::size_t Queue(troupe::emulated::Work work);
  /// Waits until the first `count` pieces of work have run.
  void Reach(std::size_t count);
  void Run();
};

struct CUevent_st {
  int device = 0;
  bool timed = false;
  std::mutex mutex;
  std::shared_ptr<troupe::emulated::Mark> mark;  // of the last record; null before it
};

struct CUmemPoolHandle_st {
  int device = 0;
  std::mutex mutex;
  std::uint64_t threshold = 0;
  std::uint64_t used = 0, peak = 0, reserved = 0;
};

namespace troupe::emulated {

struct Allocation {
  enum class Kind { kDevice, kPinned };
  Kind kind = Kind::kDevice;
  int device = 0;
  std::size_t num_bytes = 0;
  bool alive = false;  // between allocation and release in stream order
  bool freed = false;  // its release is queued
  std::shared_ptr<CUmemPoolHandle_st> pool;
};

struct Device {
  std::atomic<cudaError_t> error = cudaSuccess;
  std::atomic<std::size_t> used = 0;  // bytes
};

struct World {
  MachineSettings settings;
  std::vector<std::unique_ptr<Device>> devices;

  // A reader does not order what it does after what another reader did, so checks of memory hide
  // no race.
  mutable std::shared_mutex memory_mutex;
  std::map<const std::byte*, Allocation> memory;         // by first byte
  std::deque<std::pair<std::byte*, std::size_t>> grave;  // released: kept for a while, as rubbish
  std::size_t grave_bytes = 0;
  // Shared by work that uses memory, taken alone to give back that of a device that has failed: its
  // streams wait for no events any more, so they order nothing, but nothing of it runs either. As
  // long as devices work no thread takes it alone: no race is hidden.
  std::shared_mutex memory_in_use;

  // Shared, so that calls of two threads order nothing but themselves.
  mutable std::shared_mutex mutex;
  std::set<cudaStream_t> streams;
  std::vector<std::unique_ptr<CUstream_st>> all_streams;  // destroyed ones too, until the end
  std::set<cudaEvent_t> events;
  std::map<cudaMemPool_t, std::shared_ptr<CUmemPoolHandle_st>> pools;
  unsigned num_streams_ever = 0;

  std::mutex spoilt_mutex;
  std::optional<SpoiltCopy> spoilt;  // what is to come
  std::atomic<bool> spoils = false;  // so that other copies of two threads order nothing
  std::atomic<std::size_t> num_kernels = 0;

  mutable std::mutex fault_mutex;
  std::string fault;
};

/// The machine there is; throws std::logic_error without one.
World& TheWorld();
void Fault(const std::string& text);

/// The call may go on: no host function makes it, and `device` has not failed. Else what the call
/// returns.
cudaError_t Enter(int device, const char* call);
/// Keeps `code` as the thread's last error.
cudaError_t Note(cudaError_t code);
int CurrentDevice();
/// While one lives, the thread runs a host function.
struct HostFunction {
  HostFunction();
  HostFunction(const HostFunction&) = delete;
  HostFunction& operator=(const HostFunction&) = delete;
  ~HostFunction();
};

/// Whether `num_bytes` at `data` may be used now by work of `device`. Else a fault.
bool MayUse(const void* data, std::size_t num_bytes, int device, const char* what);
/// What `data` points into, alive or not; nothing for memory that is neither a device's nor pinned.
std::optional<Allocation> FindMemory(const void* data);
/// Which byte the next copy of `num_bytes` gets wrong, if it does: each call counts as one.
std::optional<std::size_t> SpoiltByte(std::size_t num_bytes);
/// Queues a kernel: the current device must be the stream's. Faults and failures as CUDA has them.
void Launch(cudaStream_t stream, std::function<void()> kernel);

}  // namespace troupe::emulated
