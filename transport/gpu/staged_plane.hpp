// A data plane for tensors on devices, in front of one that knows memory of the host only.
//
//   cut      every message of more than kPieceBytes travels in pieces of that size, wherever its
//            memory is: so the two ends of a message need not know of each other's. Piece 0 has the
//            label of the message, the others derived ones
//   staged   pieces of device memory go through pinned memory, kInFlight at a time: one is copied
//            while the other travels. Pieces of host memory go as they are, all at once
//   direct   where the plane behind reads and writes memory of devices itself nothing is copied,
//            but cut all the same
//   pulled   as received; the home of a tensor brings it to pinned memory slice by slice
//            (UcxOptions::to_host)
//
// At the end of a process: close the plane behind, then destroy the staging, then this, then that
// plane.
//
// Each message has its own kInFlight pinned pieces: with a shared number of them two processes
// could wait for each other's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/gpu/staging.hpp"
#include "transport/plane_in_front.hpp"

namespace troupe {

/// Thread-safe. Callbacks come on the thread of the plane behind or of the staging.
class StagedPlane final : public PlaneInFront {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
  static constexpr int kInFlight = 2;

  struct Options {
    bool reads_device_memory = false;         ///< the plane behind does
    std::size_t piece_bytes = kPieceBytes;    ///< the same in all processes
    std::shared_ptr<AbortSignal> abort = {};  ///< raised when a device fails in a send; may be null
  };

  /// `plane` and `carrier` as of PlaneInFront. `staging` must outlive this, too, and operations
  /// that are open keep what they need of this.
  StagedPlane(DataPlane& plane, TensorCarrier& carrier, DeviceStaging& staging, Options options);
  ~StagedPlane() override;

  /// One line for the start of a run: "UCX: device memory through pinned chunks of 4 MiB" and, if
  /// so, ", copies checked", or "UCX reads device memory itself".
  std::string Describe(const std::string& plane) const;

  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(ProcessId from, Label label, Buffer destination, std::string what,
               std::function<void()> received, OnFailure failed) override;
  void Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
            std::string what, std::function<void()> received, OnFailure failed) override;

 private:
  struct Parts;
  struct Outgoing;
  struct Incoming;
  const std::shared_ptr<const Parts> parts_;
};

/// For UcxOptions::to_host. A copy that fails raises `abort` (may be null) with the reason, since
/// who pulls only hears that there is nothing. `staging` must outlive the plane.
using ToHostForPulls = std::function<void(
    Buffer bytes, std::function<void(Buffer here, const std::string& error)> done)>;
ToHostForPulls BringToHost(DeviceStaging& staging, std::shared_ptr<AbortSignal> abort);

/// What piece `piece` of a message is called: no other piece of any message is, any more than two
/// names have one StreamOf.
Label LabelOfPiece(Label message, std::uint64_t piece);

}  // namespace troupe
