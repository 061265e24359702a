// What TensorStore keeps; for its own source files.
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
    std::uint64_t weight = 0;  // that others have
  };

  /// This process's part of an allocation elsewhere.
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
    const std::size_t num_bytes;  // that the reference named
    std::atomic<std::uint64_t> weight;
    std::atomic<std::uint64_t> pushed;  // until the first Fetch of all of it takes the bytes
  };

  /// A buffer of this process whose bytes leave with the message that names it.
  struct Pushing {
    Pushing(Buffer bytes, ProcessId receiver) : buffer(std::move(bytes)), to(receiver) {}
    const Buffer buffer;
    const ProcessId to;
  };

  /// Owned by all handles and views of what is not local.
  using Owner = std::variant<Pushing, Share>;
  static Owner& OwnerOf(const Buffer& handle) { return *static_cast<Owner*>(handle.owner().get()); }

  /// Calls the carrier unless there is none any more; Detach() waits for the end of such calls.
  bool WithCarrier(const std::function<void(TensorCarrier&)>& call);
  /// Memory for the bytes of a handle.
  Buffer Allocate(const Buffer& handle, int device) const;
  ProcessId Self() const;
  /// Takes in and drops what was pushed and not fetched, so that nothing of it stays in the plane.
  void Discard(const Share& share, std::uint64_t number) noexcept;
  /// The pinned bytes [offset, offset + num_bytes). The lock is held.
  const Buffer& Find(std::uint64_t key, std::int64_t offset, std::size_t num_bytes) const;
  /// What the last weight releases. The lock is held, so the caller drops it after unlocking.
  Buffer Subtract(std::uint64_t key, std::uint64_t weight);

  const std::shared_ptr<AbortSignal> abort;
  mutable std::mutex mutex;
  std::condition_variable calls_ended;
  TensorCarrier* carrier = nullptr;
  DataPlane* plane = nullptr;  // set with the carrier; used in its calls
  DeviceMemory device_memory;
  int num_calls = 0;  // of the carrier, in progress
  bool detached = false;
  ProcessId self = 0;  // a process that is alone is number 0
  bool alone = true;
  std::uint64_t next_key = 1;
  std::atomic<std::uint64_t> num_pushed = 0;
  std::unordered_map<std::uint64_t, Pin> pins;
};

/// The message of the plane that brings what was pushed; the sender counts.
Label LabelOfPushed(std::uint64_t number);
/// "tensor 7": in errors.
std::string TensorName(std::uint64_t key);

}  // namespace troupe
