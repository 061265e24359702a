#include "transport/tensor_store.hpp"

#include <mutex>
#include <stdexcept>
#include <utility>

#include "transport/awaited.hpp"
#include "transport/tensor_store_state.hpp"
#include "transport/timed_wait.hpp"

namespace troupe {

TensorStore::State::Share::~Share() {
  if (const std::uint64_t number = pushed.exchange(0); number != 0) state->Discard(*this, number);
  state->WithCarrier([this](TensorCarrier& to) { to.Return(home, key, weight); });
}

bool TensorStore::State::WithCarrier(const std::function<void(TensorCarrier&)>& call) {
  TensorCarrier* user = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (carrier == nullptr) return false;
    user = carrier;
    ++num_calls;
  }
  struct Ended {  // also runs if the carrier throws
    State& state;
    ~Ended() {
      const std::lock_guard lock(state.mutex);
      if (--state.num_calls == 0) state.calls_ended.notify_all();
    }
  } const ended{*this};
  call(*user);
  return true;
}

Buffer TensorStore::State::Allocate(const Buffer& handle, int device) const {
  if (device == Buffer::kHost) return Buffer::Allocate(handle.shape(), handle.dtype());
  DeviceMemory memory;
  {
    const std::lock_guard lock(mutex);
    memory = device_memory;
  }
  if (!memory) {
    throw std::logic_error("tensor store: expected AllocateOnDevices before a fetch to device " +
                           std::to_string(device));
  }
  return memory(handle.shape(), handle.dtype(), device);
}

ProcessId TensorStore::State::Self() const {
  const std::lock_guard lock(mutex);
  return self;
}

void TensorStore::State::Discard(const Share& share, std::uint64_t number) noexcept {
  try {
    const Buffer nowhere = Buffer::AllocateBytes(share.num_bytes);
    WithCarrier([&](TensorCarrier&) {
      plane->Receive({share.home, LabelOfPushed(number), nowhere, TensorName(share.key),
                      [nowhere] {}, [nowhere](const Failure&) {}});
    });
  } catch (const std::exception&) {
    // The plane keeps the bytes until it closes.
  }
}

const Buffer& TensorStore::State::Find(std::uint64_t key, std::int64_t offset,
                                       std::size_t num_bytes) const {
  const auto found = pins.find(key);
  if (found == pins.end()) {
    throw std::out_of_range(TensorName(key) +
                            ": expected one that is still referred to, got a number "
                            "that was never issued or has been returned");
  }
  const std::size_t size = found->second.buffer.num_bytes();
  if (offset < 0 || num_bytes > size || static_cast<std::size_t>(offset) > size - num_bytes) {
    throw std::out_of_range(TensorName(key) + ": expected a part of its " + std::to_string(size) +
                            " bytes, got " + std::to_string(num_bytes) + " at byte " +
                            std::to_string(offset));
  }
  return found->second.buffer;
}

Buffer TensorStore::State::Subtract(std::uint64_t key, std::uint64_t weight) {
  const auto found = pins.find(key);
  if (found == pins.end() || weight > found->second.weight) {
    throw std::out_of_range(TensorName(key) + ": expected back at most weight " +
                            std::to_string(found == pins.end() ? 0 : found->second.weight) +
                            ", got " + std::to_string(weight));
  }
  found->second.weight -= weight;
  if (found->second.weight > 0) return Buffer();
  Buffer released = std::move(found->second.buffer);
  pins.erase(found);
  return released;
}

TensorStore::TensorStore(std::shared_ptr<AbortSignal> abort)
    : state_(std::make_shared<State>(abort != nullptr ? std::move(abort)
                                                      : std::make_shared<AbortSignal>())) {}

TensorStore::~TensorStore() { Detach(); }

void TensorStore::Attach(TensorCarrier* carrier, DataPlane* plane) {
  const std::lock_guard lock(state_->mutex);
  if (state_->detached || !state_->alone)
    throw std::logic_error("tensor store: expected to be attached once, got a second carrier");
  state_->carrier = carrier;
  state_->plane = plane;
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

void TensorStore::Fetch(const Buffer& buffer, std::string what, std::function<void(Buffer)> fetched,
                        OnFailure failed, int device) {
  if (buffer.local()) {
    fetched(buffer);
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
    fetched(destination);
    return;
  }
  auto& share = std::get<State::Share>(State::OwnerOf(buffer));
  const bool whole = share.num_bytes == buffer.num_bytes();
  const std::uint64_t pushed = whole ? share.pushed.exchange(0) : 0;
  const bool carried = state_->WithCarrier([&](TensorCarrier& carrier) {
    // The handle lives until the bytes have arrived, so its home cannot release them before.
    Reception reception{
        share.home,
        LabelOfPushed(pushed),
        destination,
        what,
        [buffer, destination, fetched = std::move(fetched)] { fetched(destination); },
        failed};
    if (pushed != 0) {
      state_->plane->Receive(std::move(reception));
    } else {
      carrier.Pull(share.key, buffer.remote_offset(), std::move(reception));
    }
  });
  if (carried) return;
  const Failure cause = state_->abort->failure();
  failed(cause.empty() ? Failure(what + ": expected to fetch a tensor of process " +
                                 std::to_string(share.home) + ", but the job has ended")
                       : cause);
}

Buffer TensorStore::FetchNow(const Buffer& buffer, const std::string& what, int device) {
  if (buffer.local()) return buffer;
  const TimedWait timed;
  const Awaited<Buffer> fetched;
  Fetch(
      buffer, what, [fetched](Buffer bytes) { fetched.Deliver(std::move(bytes)); },
      [fetched](const Failure& failure) { fetched.Fail(failure); }, device);
  return fetched.Wait(*state_->abort);
}

Buffer TensorStore::Pinned(std::uint64_t key, std::int64_t offset, std::int64_t num_bytes) const {
  const std::lock_guard lock(state_->mutex);
  if (num_bytes < 0) {
    throw std::out_of_range(TensorName(key) + ": expected at least 0 bytes, got " +
                            std::to_string(num_bytes));
  }
  const Buffer& pinned = state_->Find(key, offset, static_cast<std::size_t>(num_bytes));
  return BytesOf(pinned, static_cast<std::size_t>(offset), static_cast<std::size_t>(num_bytes));
}

void TensorStore::TakeBack(std::uint64_t key, std::uint64_t weight) {
  Buffer released;  // destroyed after unlocking: its owner may run any code
  const std::lock_guard lock(state_->mutex);
  released = state_->Subtract(key, weight);
}

std::size_t TensorStore::num_pinned() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pins.size();
}

}  // namespace troupe
