// How tensors cross processes: a message carries a reference, the bytes move when they are fetched.
//
//   Refer    a buffer that leaves in a message: it stays here, pinned, until everybody who got the
//            reference has let go of it
//   Resolve  the reference on the other side: a handle that is not local(); at home the buffer
//            itself, so that a handle which went around comes back as what it was
//   Fetch    the bytes of such a handle into memory of this process
//   Push     a buffer whose receiver is known and will fetch all of it: the bytes leave with the
//            message that names it, so that the Fetch there does not ask for them
//
// References are counted by weight: a reference that is passed on gives half of its weight away,
// one that is dropped returns its weight to its home, which lets go when all of it is back. So no
// message is needed to pass a reference on, and none can be late.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/buffer.hpp"
#include "transport/data_plane.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// A buffer as it travels in a message.
struct TensorReference {
  ProcessId home = -1;       ///< who holds the bytes; -1 = an undefined buffer
  std::uint64_t key = 0;     ///< names the allocation at home
  std::uint64_t weight = 0;  ///< this reference's share of it
  std::int64_t offset = 0;   ///< bytes from the allocation's first referred byte
  Shape shape;
  DType dtype = DType::kFloat32;
  std::uint64_t pushed = 0;  ///< the bytes follow, as its home's message of this number; 0: ask
};

/// What a store needs of the processes it talks to. The UCX plane is one.
class TensorCarrier {
 public:
  virtual ~TensorCarrier() = default;
  virtual ProcessId self() const = 0;
  /// Brings `destination.num_bytes()` bytes from `offset` of allocation `key` at `home`. Callbacks
  /// as in DataPlane::Receive.
  virtual void Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
                    std::string what, std::function<void()> received, OnFailure failed) = 0;
  /// Returns weight to `home`. Never waits, never throws.
  virtual void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) = 0;
};

/// Uninitialised memory of a device of this process, which anybody may use at once. May throw.
using DeviceMemory = std::function<Buffer(Shape shape, DType dtype, int device)>;

/// Thread-safe. One per process; a process that is alone has one without a carrier.
class TensorStore {
 public:
  explicit TensorStore(std::shared_ptr<AbortSignal> abort);
  ~TensorStore();

  /// Set once, before the first reference leaves. The carrier must outlive all remote handles or
  /// be Detach()ed first. `plane`, of the same processes, lives as long and moves what is pushed;
  /// null: everything is pulled.
  void Attach(TensorCarrier* carrier, DataPlane* plane = nullptr);
  /// How tensors that are fetched onto a device get their memory; before the first of them.
  void AllocateOnDevices(DeviceMemory memory);
  /// From now on returned weights go nowhere and fetches fail: the job has ended.
  void Detach();

  /// A handle for a message to `to`, which fetches all of the buffer: its bytes leave when the
  /// message is written. `buffer` itself where there is nothing to send (it has no bytes, `to` is
  /// this process) and where it is pulled as ever (it lives elsewhere, or in parts).
  Buffer Push(const Buffer& buffer, ProcessId to);
  /// Whether a Fetch has to ask for the bytes: two ways between processes instead of none.
  bool Asks(const Buffer& buffer) const;

  TensorReference Refer(const Buffer& buffer);
  /// Throws std::invalid_argument for a reference that says impossible things.
  Buffer Resolve(const TensorReference& reference);

  /// Calls `here` with a local buffer: at once, on this thread, with `buffer` itself if it is local
  /// or undefined, wherever in this process it is; else later, on the carrier's thread, with memory
  /// of `device`. A device without memory for it is a failure in its words. Throws std::logic_error
  /// for a device when nobody has said how to allocate there.
  void Fetch(const Buffer& buffer, std::string what, std::function<void(Buffer)> here,
             OnFailure failed, int device = Buffer::kHost);
  /// The same, waiting. Throws Aborted when the job's signal is raised meanwhile, and
  /// std::runtime_error with the plane's words.
  Buffer FetchNow(const Buffer& buffer, const std::string& what, int device = Buffer::kHost);

  /// For the carrier, on behalf of another process: on a device if the tensor is, and in parts if
  /// it is. Throws std::out_of_range naming the key.
  Buffer Pinned(std::uint64_t key, std::int64_t offset, std::int64_t num_bytes) const;
  void TakeBack(std::uint64_t key, std::uint64_t weight);

  /// Allocations that others still refer to. 0 after an orderly end.
  std::size_t num_pinned() const;

 private:
  struct State;
  TensorReference ReferPushed(const Buffer& handle);

  std::shared_ptr<State> state_;
};

}  // namespace troupe
