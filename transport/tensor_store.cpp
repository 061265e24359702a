#include "transport/tensor_store.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace troupe {
namespace {

/// What a reference that leaves home carries. Halved once per process that passes it on.
constexpr std::uint64_t kWholeWeight = std::uint64_t{1} << 48;

std::string Name(std::uint64_t key) { return "tensor " + std::to_string(key); }

std::string Describe(const TensorReference& reference) {
  return "reference to " + Name(reference.key) + " of process " + std::to_string(reference.home) +
         " (" + ToString(reference.dtype) + " " + ToString(reference.shape) + " at byte " +
         std::to_string(reference.offset) + ", weight " + std::to_string(reference.weight) + ")";
}

[[noreturn]] void Refuse(const TensorReference& reference, const std::string& why) {
  throw std::invalid_argument(Describe(reference) + ": " + why);
}

/// A handle without owner: checks shape and dtype, and counts the bytes.
Buffer Outline(const TensorReference& reference) {
  try {
    return Buffer::Remote(nullptr, 0, reference.shape, reference.dtype);
  } catch (const std::bad_alloc&) {
    Refuse(reference, "it has more bytes than memory can");
  }
}

/// What `reference` names of a buffer in parts, which are whole rows.
Buffer RowsAt(const Buffer& whole, const TensorReference& reference) {
  const auto row_bytes = static_cast<std::int64_t>(whole.row_bytes());
  const std::int64_t first = reference.offset / row_bytes;
  const std::int64_t count = reference.shape.empty() ? 0 : reference.shape.front();
  Buffer rows = whole.Rows(first, std::min(first + count, whole.num_rows()));
  if (reference.offset % row_bytes != 0 || rows.shape() != reference.shape ||
      rows.dtype() != reference.dtype)
    Refuse(reference, "expected rows of " + ToString(whole.dtype()) + " " +
                          ToString(whole.shape()) + " in parts");
  return rows;
}

}  // namespace

struct TensorStore::State : std::enable_shared_from_this<TensorStore::State> {
  explicit State(std::shared_ptr<AbortSignal> signal) : abort(std::move(signal)) {}

  struct Pin {
    Buffer buffer;
    std::uint64_t weight = 0;  // that others have
  };

  /// This process's part of an allocation elsewhere: owned by all handles and views of it.
  struct Share {
    Share(std::shared_ptr<State> store, const TensorReference& reference)
        : state(std::move(store)),
          home(reference.home),
          key(reference.key),
          weight(reference.weight) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() {
      state->WithCarrier([this](TensorCarrier& carrier) { carrier.Return(home, key, weight); });
    }

    const std::shared_ptr<State> state;
    const ProcessId home;
    const std::uint64_t key;
    std::atomic<std::uint64_t> weight;
  };

  /// Calls the carrier unless there is none any more; Detach() waits for the end of such calls.
  bool WithCarrier(const std::function<void(TensorCarrier&)>& call) {
    TensorCarrier* user = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (carrier == nullptr) return false;
      user = carrier;
      ++num_calls;
    }
    call(*user);
    const std::lock_guard lock(mutex);
    if (--num_calls == 0) calls_ended.notify_all();
    return true;
  }

  /// Memory for the bytes of a handle.
  Buffer Allocate(const Buffer& handle, int device) const {
    if (device == Buffer::kHost) return Buffer::Allocate(handle.shape(), handle.dtype());
    DeviceMemory memory;
    {
      const std::lock_guard lock(mutex);
      memory = device_memory;
    }
    if (!memory)
      throw std::logic_error("tensor store: expected to be told how memory of device " +
                             std::to_string(device) + " is allocated");
    return memory(handle.shape(), handle.dtype(), device);
  }

  ProcessId Self() const {
    const std::lock_guard lock(mutex);
    return self;
  }

  /// The pinned bytes [offset, offset + num_bytes). The lock is held.
  const Buffer& Find(std::uint64_t key, std::int64_t offset, std::size_t num_bytes) const {
    const auto found = pins.find(key);
    if (found == pins.end())
      throw std::out_of_range(Name(key) +
                              ": expected one that is still referred to, got a number "
                              "that was never given out or is back already");
    const std::size_t size = found->second.buffer.num_bytes();
    if (offset < 0 || num_bytes > size || static_cast<std::size_t>(offset) > size - num_bytes)
      throw std::out_of_range(Name(key) + ": expected a part of its " + std::to_string(size) +
                              " bytes, got " + std::to_string(num_bytes) + " at byte " +
                              std::to_string(offset));
    return found->second.buffer;
  }

  /// What the last weight releases. The lock is held, so the caller drops it after unlocking.
  Buffer Subtract(std::uint64_t key, std::uint64_t weight) {
    const auto found = pins.find(key);
    if (found == pins.end() || weight > found->second.weight)
      throw std::out_of_range(Name(key) + ": expected back at most weight " +
                              std::to_string(found == pins.end() ? 0 : found->second.weight) +
                              ", got " + std::to_string(weight));
    found->second.weight -= weight;
    if (found->second.weight > 0) return Buffer();
    Buffer released = std::move(found->second.buffer);
    pins.erase(found);
    return released;
  }

  const std::shared_ptr<AbortSignal> abort;
  mutable std::mutex mutex;
  std::condition_variable calls_ended;
  TensorCarrier* carrier = nullptr;
  DeviceMemory device_memory;
  int num_calls = 0;  // of the carrier, in progress
  bool detached = false;
  ProcessId self = 0;  // a process that is alone is number 0
  bool alone = true;
  std::uint64_t next_key = 1;
  std::unordered_map<std::uint64_t, Pin> pins;
};

TensorStore::TensorStore(std::shared_ptr<AbortSignal> abort)
    : state_(std::make_shared<State>(abort != nullptr ? std::move(abort)
                                                      : std::make_shared<AbortSignal>())) {}

TensorStore::~TensorStore() { Detach(); }

void TensorStore::Attach(TensorCarrier* carrier) {
  const std::lock_guard lock(state_->mutex);
  if (state_->detached || !state_->alone)
    throw std::logic_error("tensor store: expected to be attached once, got a second carrier");
  state_->carrier = carrier;
  state_->self = carrier->self();
  state_->alone = false;
}

void TensorStore::AllocateOnDevices(DeviceMemory memory) {
  const std::lock_guard lock(state_->mutex);
  state_->device_memory = std::move(memory);
}

void TensorStore::Detach() {
  std::unique_lock lock(state_->mutex);
  state_->detached = true;
  state_->carrier = nullptr;
  state_->calls_ended.wait(lock, [this] { return state_->num_calls == 0; });
}

TensorReference TensorStore::Refer(const Buffer& buffer) {
  TensorReference reference;
  if (!buffer.defined()) return reference;
  reference.shape = buffer.shape();
  reference.dtype = buffer.dtype();
  if (buffer.num_bytes() == 0) {
    reference.home = state_->Self();
    return reference;
  }
  if (buffer.local()) {
    const std::lock_guard lock(state_->mutex);
    reference.home = state_->self;
    reference.key = state_->next_key++;
    reference.weight = kWholeWeight;
    state_->pins.emplace(reference.key, State::Pin{buffer, kWholeWeight});
    return reference;
  }
  State::Share& share = *static_cast<State::Share*>(buffer.owner().get());
  if (share.state != state_)
    throw std::invalid_argument("tensor store: expected a handle of its own, got another store's");
  reference.home = share.home;
  reference.key = share.key;
  reference.offset = buffer.remote_offset();
  // The handle keeps the larger half, so it never has none.
  std::uint64_t weight = share.weight;
  do {
    if (weight < 2)
      throw std::logic_error(Name(share.key) + " of process " + std::to_string(share.home) +
                             ": expected a handle with weight to give away, got one that has been "
                             "passed on too often (48 times from one process to the next)");
  } while (!share.weight.compare_exchange_weak(weight, weight - weight / 2));
  reference.weight = weight / 2;
  return reference;
}

Buffer TensorStore::Resolve(const TensorReference& reference) {
  if (reference.home == -1) return Buffer();
  if (reference.home < 0) Refuse(reference, "expected a process");
  const std::size_t num_bytes = Outline(reference).num_bytes();
  if (num_bytes == 0) {
    if (reference.weight != 0) Refuse(reference, "expected no weight for no bytes");
    return Buffer::Allocate(reference.shape, reference.dtype);
  }
  if (reference.weight < 1 || reference.weight > kWholeWeight)
    Refuse(reference, "expected a weight of 1 to " + std::to_string(kWholeWeight));
  if (reference.offset < 0 ||
      reference.offset % static_cast<std::int64_t>(SizeOf(reference.dtype)) != 0)
    Refuse(reference, "expected an offset of whole elements");

  std::unique_lock lock(state_->mutex);
  if (reference.home != state_->self) {
    if (state_->alone) Refuse(reference, "this process is alone");
    lock.unlock();
    return Buffer::Remote(std::make_shared<State::Share>(state_, reference), reference.offset,
                          reference.shape, reference.dtype);
  }
  try {
    const Buffer pinned = state_->Find(reference.key, reference.offset, num_bytes);
    const Buffer released = state_->Subtract(reference.key, reference.weight);
    lock.unlock();
    if (!pinned.parts().empty()) return RowsAt(pinned, reference);
    return Buffer::Wrap(pinned.owner(), pinned.data() + reference.offset, reference.shape,
                        reference.dtype, pinned.device());
  } catch (const std::out_of_range& error) {
    Refuse(reference, error.what());
  }
}

void TensorStore::Fetch(const Buffer& buffer, std::string what, std::function<void(Buffer)> here,
                        std::function<void(const std::string& error)> failed, int device) {
  if (buffer.local()) {
    here(buffer);
    return;
  }
  Buffer destination;
  try {
    destination = state_->Allocate(buffer, device);
  } catch (const std::logic_error&) {
    throw;
  } catch (const std::exception& error) {
    failed(what + ": " + error.what());
    return;
  }
  if (destination.num_bytes() == 0) {
    here(destination);
    return;
  }
  const auto& share = *static_cast<State::Share*>(buffer.owner().get());
  const bool carried = state_->WithCarrier([&](TensorCarrier& carrier) {
    // The handle stays until the bytes are here, so its home cannot let go of them meanwhile.
    carrier.Pull(
        share.home, share.key, buffer.remote_offset(), destination, what,
        [buffer, destination, here = std::move(here)] { here(destination); }, failed);
  });
  if (carried) return;
  const std::string cause = state_->abort->cause();
  failed(cause.empty() ? what + ": expected to fetch a tensor of process " +
                             std::to_string(share.home) + ", but the job has ended"
                       : cause);
}

Buffer TensorStore::FetchNow(const Buffer& buffer, const std::string& what, int device) {
  if (buffer.local()) return buffer;
  // Outlives this call, since the carrier may answer after an abort has ended it.
  struct Wait {
    std::mutex mutex;
    std::condition_variable changed;
    bool aborted = false;
    std::optional<Buffer> result;
    std::optional<std::string> error;
  };
  const auto wait = std::make_shared<Wait>();
  const auto end = [wait](auto change) {
    {
      const std::lock_guard lock(wait->mutex);
      change(*wait);
    }
    wait->changed.notify_all();
  };
  const std::shared_ptr<void> subscription = state_->abort->Subscribe(
      [end](const std::string&) { end([](Wait& it) { it.aborted = true; }); });
  Fetch(
      buffer, what, [end](Buffer here) { end([&](Wait& it) { it.result = std::move(here); }); },
      [end](const std::string& error) { end([&](Wait& it) { it.error = error; }); }, device);
  std::unique_lock lock(wait->mutex);
  wait->changed.wait(lock, [&] { return wait->aborted || wait->result || wait->error; });
  if (wait->result) return *wait->result;
  state_->abort->ThrowIfRaised();
  throw std::runtime_error(*wait->error);
}

Buffer TensorStore::Pinned(std::uint64_t key, std::int64_t offset, std::int64_t num_bytes) const {
  const std::lock_guard lock(state_->mutex);
  if (num_bytes < 0)
    throw std::out_of_range(Name(key) + ": expected at least 0 bytes, got " +
                            std::to_string(num_bytes));
  const Buffer& pinned = state_->Find(key, offset, static_cast<std::size_t>(num_bytes));
  return BytesOf(pinned, static_cast<std::size_t>(offset), static_cast<std::size_t>(num_bytes));
}

void TensorStore::TakeBack(std::uint64_t key, std::uint64_t weight) {
  Buffer released;  // dropped after the lock: its owner may be anybody's
  const std::lock_guard lock(state_->mutex);
  released = state_->Subtract(key, weight);
}

std::size_t TensorStore::num_pinned() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pins.size();
}

}  // namespace troupe
