// Moves tensors between processes: a message carries a reference, and the bytes move when they are
// fetched.
//
//   Refer    makes a reference to a buffer for a message. The buffer stays pinned here until every
//            receiver of the reference has released it
//   Resolve  turns a reference into a handle that is not local(). At home it returns the buffer
//            itself, so that a handle that went around is local again
//   Fetch    copies the bytes of such a handle into memory of this process
//   Push     for a buffer whose receiver is known and will fetch all of it: the bytes leave with
//            the message that names it, so that Fetch need not request them
//
// References are counted by weight: a reference that is passed on gives away half of its weight. A
// dropped reference returns its weight to its home, which releases the buffer when all weight is
// back. So passing a reference on needs no message, and no message can be late.
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

/// A buffer in wire format.
struct TensorReference {
  ProcessId home = -1;       ///< the process that has the bytes; -1 = an undefined buffer
  std::uint64_t key = 0;     ///< names the allocation at home
  std::uint64_t weight = 0;  ///< this reference's share of it
  std::int64_t offset = 0;   ///< bytes from the allocation's first referred byte
  Shape shape;
  DType dtype = DType::kFloat32;
  std::uint64_t pushed = 0;  ///< sequence number of the home's message with the bytes; 0: pull them
};

/// A store's connection to the other processes. The data planes implement it.
class TensorCarrier {
 public:
  virtual ~TensorCarrier() = default;
  virtual ProcessId self() const = 0;
  /// Copies bytes from `offset` of allocation `key` at process `reception.from`. Ignores
  /// `reception.label`.
  virtual void Pull(std::uint64_t key, std::int64_t offset, Reception reception) = 0;
  /// Returns weight to `home`. Never waits, never throws.
  virtual void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) = 0;
};

/// Returns uninitialised memory of a device of this process, ready for use by any stream. May
/// throw.
using DeviceMemory = std::function<Buffer(Shape shape, DType dtype, int device)>;

/// Thread-safe. One per process; in a job of one process it has no carrier.
class TensorStore {
 public:
  explicit TensorStore(std::shared_ptr<AbortSignal> abort);
  ~TensorStore();

  /// Call it once, before the first reference leaves. The carrier must outlive all remote handles,
  /// unless Detach() is called first. `plane` connects the same processes, lives as long and moves
  /// pushed tensors; null: everything is pulled.
  void Attach(TensorCarrier* carrier, DataPlane* plane = nullptr);
  /// Sets the allocator for fetches to devices. Before the first of these.
  void AllocateOnDevices(DeviceMemory memory);
  /// The job has ended: drops returned weights and fails fetches from now on.
  void Detach();

  /// A handle for a message to `to`, which fetches all of the buffer: the bytes leave when the
  /// message is serialised. Returns `buffer` itself if there is nothing to send (no bytes, or `to`
  /// is this process) or if it must be pulled (it is remote or in parts).
  Buffer Push(const Buffer& buffer, ProcessId to);
  /// Whether a Fetch must request the bytes, which costs a round trip between processes.
  bool Asks(const Buffer& buffer) const;

  TensorReference Refer(const Buffer& buffer);
  /// Throws std::invalid_argument for an invalid reference.
  Buffer Resolve(const TensorReference& reference);

  /// Calls `fetched` with a local buffer. If `buffer` is local or undefined, calls it at once, on
  /// this thread, with `buffer` itself, wherever in this process it is. Otherwise later, on the
  /// carrier's thread, with memory of `device`. If the device is out of memory, calls `failed` with
  /// its error text. Throws std::logic_error for a device before AllocateOnDevices.
  void Fetch(const Buffer& buffer, std::string what, std::function<void(Buffer)> fetched,
             OnFailure failed, int device = Buffer::kHost);
  /// Like Fetch, but blocks. Throws Aborted if the job's signal is raised meanwhile, and
  /// std::runtime_error with the plane's error text.
  Buffer FetchNow(const Buffer& buffer, const std::string& what, int device = Buffer::kHost);

  /// For the carrier, on behalf of another process: the pinned bytes, on a device or in parts if
  /// the tensor is. Throws std::out_of_range naming the key.
  Buffer Pinned(std::uint64_t key, std::int64_t offset, std::int64_t num_bytes) const;
  void TakeBack(std::uint64_t key, std::uint64_t weight);

  /// Allocations that other processes still refer to. 0 after an orderly end.
  std::size_t num_pinned() const;

 private:
  struct State;
  TensorReference ReferPushed(const Buffer& handle);

  std::shared_ptr<State> state_;
};

}  // namespace troupe
