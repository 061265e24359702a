// Converts buffers to references in messages, and references to handles.
#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "transport/tensor_store_state.hpp"

namespace troupe {
namespace {

/// The weight of a reference that leaves home. Halved once per process that passes it on.
constexpr std::uint64_t kWholeWeight = std::uint64_t{1} << 48;

std::string Describe(const TensorReference& reference) {
  return "reference to " + TensorName(reference.key) + " of process " +
         std::to_string(reference.home) + " (" + ToString(reference.dtype) + " " +
         ToString(reference.shape) + " at byte " + std::to_string(reference.offset) + ", weight " +
         std::to_string(reference.weight) + ")";
}

[[noreturn]] void Refuse(const TensorReference& reference, const std::string& why) {
  throw std::invalid_argument(Describe(reference) + ": " + why);
}

/// A handle without owner: checks shape and dtype and provides the size in bytes.
Buffer Outline(const TensorReference& reference) {
  try {
    return Buffer::Remote(nullptr, 0, reference.shape, reference.dtype);
  } catch (const std::bad_alloc&) {
    Refuse(reference, "it has more bytes than memory can hold");
  }
}

/// The rows of a buffer in parts that `reference` names; a part consists of whole rows.
Buffer RowsAt(const Buffer& whole, const TensorReference& reference) {
  const auto row_bytes = static_cast<std::int64_t>(whole.row_bytes());
  const std::int64_t first = reference.offset / row_bytes;
  const std::int64_t count = reference.shape.empty() ? 0 : reference.shape.front();
  Buffer rows = whole.Rows(first, std::min(first + count, whole.num_rows()));
  if (reference.offset % row_bytes != 0 || rows.shape() != reference.shape ||
      rows.dtype() != reference.dtype) {
    Refuse(reference, "expected rows of " + ToString(whole.dtype()) + " " +
                          ToString(whole.shape()) + " in parts");
  }
  return rows;
}

}  // namespace

Label LabelOfPushed(std::uint64_t number) {
  static const std::uint64_t stream = StreamOf("pushed tensor");
  return {stream, number};
}

std::string TensorName(std::uint64_t key) { return "tensor " + std::to_string(key); }

Buffer TensorStore::Push(const Buffer& buffer, ProcessId to) {
  if (!buffer.defined() || !buffer.local() || buffer.num_bytes() == 0 || !buffer.parts().empty())
    return buffer;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->plane == nullptr || to == state_->self) return buffer;
  }
  const auto owner = std::make_shared<State::Owner>(std::in_place_type<State::Pushing>, buffer, to);
  return Buffer::Remote(owner, 0, buffer.shape(), buffer.dtype());
}

bool TensorStore::Asks(const Buffer& buffer) const {
  if (buffer.local()) return false;
  const auto* const share = std::get_if<State::Share>(&State::OwnerOf(buffer));
  return share != nullptr && (share->pushed == 0 || share->num_bytes != buffer.num_bytes());
}

/// A reference to the part of the buffer that `handle` names; sends its bytes at once.
TensorReference TensorStore::ReferPushed(const Buffer& handle) {
  const auto& pushing = std::get<State::Pushing>(State::OwnerOf(handle));
  const Buffer bytes =
      BytesOf(pushing.buffer, static_cast<std::size_t>(handle.remote_offset()), handle.num_bytes());
  TensorReference reference = Refer(
      Buffer::Wrap(bytes.owner(), bytes.data(), handle.shape(), handle.dtype(), bytes.device()));
  const std::uint64_t number = ++state_->num_pushed;
  const bool sent = state_->WithCarrier([&](TensorCarrier&) {
    state_->plane->Send(pushing.to, LabelOfPushed(number), bytes, nullptr);
  });
  if (sent) reference.pushed = number;
  return reference;
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
  State::Owner& owner = State::OwnerOf(buffer);
  if (std::holds_alternative<State::Pushing>(owner)) return ReferPushed(buffer);
  auto& share = std::get<State::Share>(owner);
  if (share.state != state_)
    throw std::invalid_argument("tensor store: expected a handle of its own, got another store's");
  reference.home = share.home;
  reference.key = share.key;
  reference.offset = buffer.remote_offset();
  // The handle keeps the larger half, so its weight never becomes 0.
  std::uint64_t weight = share.weight;
  do {
    if (weight < 2) {
      throw std::logic_error(TensorName(share.key) + " of process " + std::to_string(share.home) +
                             ": expected a handle with weight to give away, got one that has been "
                             "passed on too often (48 times from one process to the next)");
    }
  } while (!share.weight.compare_exchange_weak(weight, weight - weight / 2));
  reference.weight = weight / 2;
  return reference;
}

Buffer TensorStore::Resolve(const TensorReference& reference) {
  if (reference.home == -1) return Buffer();
  if (reference.home < 0) Refuse(reference, "expected a process");
  const std::size_t num_bytes = Outline(reference).num_bytes();
  if (num_bytes == 0) {
    if (reference.pushed != 0) Refuse(reference, "expected no pushed message for 0 bytes");
    if (reference.weight != 0) Refuse(reference, "expected no weight for 0 bytes");
    return Buffer::Allocate(reference.shape, reference.dtype);
  }
  if (reference.weight < 1 || reference.weight > kWholeWeight)
    Refuse(reference, "expected a weight of 1 to " + std::to_string(kWholeWeight));
  if (reference.offset < 0 ||
      reference.offset % static_cast<std::int64_t>(SizeOf(reference.dtype)) != 0)
    Refuse(reference, "expected an offset of whole elements");

  std::unique_lock lock(state_->mutex);
  if (reference.home != state_->self) {
    if (state_->alone) Refuse(reference, "this is the only process");
    lock.unlock();
    const auto owner = std::make_shared<State::Owner>(std::in_place_type<State::Share>, state_,
                                                      reference, num_bytes);
    return Buffer::Remote(owner, reference.offset, reference.shape, reference.dtype);
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

}  // namespace troupe
