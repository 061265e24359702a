// The state of TensorStore; for its own source files.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "transport/tensor_store.hpp"

namespace troupe {

struct TensorStore::State : std::enable_shared_from_this<TensorStore::State> {
  explicit State(std::shared_ptr<AbortSignal> signal) : abort(std::move(signal)) {}

  struct Pin {
    Buffer buffer;
    std::uint64_t weight = 0;  // held by other processes
  };

  /// This process's share of another process's allocation.
  struct Share {
    Share(std::shared_ptr<State> store, const TensorReference& reference, std::size_t size)
        : state(std::move(store)),
          home(reference.home),
          key(reference.key),
          num_bytes(size),
          weight(reference.weight),
          pushed(state->plane == nullptr ? 0 : reference.pushed) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share();

    const std::shared_ptr<State> state;
    const ProcessId home;
    const std::uint64_t key;
    const std::size_t num_bytes;  // named by the reference
    std::atomic<std::uint64_t> weight;
    std::atomic<std::uint64_t> pushed;  // 0 once a Fetch of the whole takes the bytes
  };

  /// A buffer of this process whose bytes leave with the message that names it.
  struct Pushing {
    Pushing(Buffer bytes, ProcessId receiver) : buffer(std::move(bytes)), to(receiver) {}
    const Buffer buffer;
    const ProcessId to;
  };

  /// Owned by all remote handles and their views.
  using Owner = std::variant<Pushing, Share>;
  static Owner& OwnerOf(const Buffer& handle) { return *static_cast<Owner*>(handle.owner().get()); }

  /// Calls the carrier, if there is one. Detach() waits for calls in progress.
  bool WithCarrier(const std::function<void(TensorCarrier&)>& call);
  /// Allocates memory for the bytes of a handle.
  Buffer Allocate(const Buffer& handle, int device) const;
  ProcessId Self() const;
  /// Receives and drops a pushed tensor that was not fetched, so that the plane does not keep it.
  void Discard(const Share& share, std::uint64_t number) noexcept;
  /// The buffer pinned under `key`; checks the range. Requires the lock.
  const Buffer& Find(std::uint64_t key, std::int64_t offset, std::size_t num_bytes) const;
  /// Returns the buffer that the last weight releases. Requires the lock; the caller destroys the
  /// result after unlocking.
  Buffer Subtract(std::uint64_t key, std::uint64_t weight);

  const std::shared_ptr<AbortSignal> abort;
  mutable std::mutex mutex;
  std::condition_variable calls_ended;
  TensorCarrier* carrier = nullptr;
  DataPlane* plane = nullptr;  // set with the carrier; used while calling it
  DeviceMemory device_memory;
  int num_calls = 0;  // calls of the carrier in progress
  bool detached = false;
  ProcessId self = 0;  // a process without others is number 0
  bool alone = true;
  std::uint64_t next_key = 1;
  std::atomic<std::uint64_t> num_pushed = 0;
  std::unordered_map<std::uint64_t, Pin> pins;
};

/// The label of a pushed tensor's message; the sender counts the numbers.
Label LabelOfPushed(std::uint64_t number);
/// "tensor 7", for errors.
std::string TensorName(std::uint64_t key);

}  // namespace troupe
