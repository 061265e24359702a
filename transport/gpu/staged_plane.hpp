// A data plane for tensors on devices, wrapping a plane for host memory.
//
//   cut      every message of more than kPieceBytes travels in pieces of that size, in whatever
//            memory it is, so the two ends need not know each other's. Piece 0 has the label of
//            the message, the others derived labels
//   staged   pieces of device memory go through pinned memory, kInFlight at a time: one is copied
//            while another travels. Pieces of host memory are sent in place, all at once
//   direct   if the wrapped plane reads and writes device memory itself, pieces are not copied
//   pulled   like received; the home of a tensor copies it to pinned memory slice by slice
//            (PlaneSettings::to_host)
//
// At the end of a process: close the wrapped plane, then destroy the staging, this plane and the
// wrapped plane, in this order.
//
// Each message has its own kInFlight pinned pieces: if messages shared a fixed number, two
// processes could wait for each other's pieces.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/gpu/staging.hpp"
#include "transport/plane_in_front.hpp"

namespace troupe {

/// Thread-safe. Callbacks run on the thread of the wrapped plane or of the staging.
class StagedPlane final : public PlaneInFront {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
  static constexpr int kInFlight = 2;

  struct Options {
    bool reads_device_memory = false;         ///< of the wrapped plane
    std::size_t piece_bytes = kPieceBytes;    ///< the same in all processes
    std::shared_ptr<AbortSignal> abort = {};  ///< raised if a device fails in a send; may be null
  };

  /// `plane` and `carrier` as for PlaneInFront. `staging` must outlive this. Open operations keep
  /// their own state and may outlive this.
  StagedPlane(DataPlane& plane, TensorCarrier& carrier, DeviceStaging& staging, Options options);
  ~StagedPlane() override;

  /// One line for the start of a run: "UCX: device memory through pinned chunks of 4 MiB", with ",
  /// copies checked" if so, or "UCX reads device memory itself".
  std::string Describe(const std::string& plane) const;

  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(Reception reception) override;
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception) override;

 private:
  struct Parts;
  struct Outgoing;
  struct Incoming;
  const std::shared_ptr<const Parts> parts_;
};

/// Makes PlaneSettings::to_host. A failed copy raises `abort` (may be null) with the reason, since
/// the puller only learns that the pull was refused. `staging` must outlive the plane.
using ToHostForPulls = std::function<void(
    Buffer bytes, std::function<void(Buffer pinned, const std::string& error)> done)>;
ToHostForPulls MakeToHost(DeviceStaging& staging, std::shared_ptr<AbortSignal> abort);

/// The label of piece `piece` of a message. Pieces of different messages have different labels,
/// unless two streams have the same number.
Label LabelOfPiece(Label message, std::uint64_t piece);

}  // namespace troupe
