// Moves tensors between processes over UCX: a job's data plane and the carrier of its tensor store.
//
// A process may call fork() only before it makes the first of these objects.
//
// Safety. Without the job's secret a process can neither guess the destination of a message nor
// request one. With a header, a received message is known to be meant for its receive. Nothing is
// encrypted. A worker listens on a port if its transports include tcp: restrict it to a network
// that the job may trust.
//
// Memory. A send keeps its buffer until the bytes are sent; if it was cut off, until the plane is
// destroyed. A receive that failed during its transfer (its peer is stuck) may write into its
// destination as long as the plane lives. The handle is kept, so the destination must own its
// memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transport/plane_door.hpp"

namespace troupe {

struct UcxOptions : PlaneSettings {
  std::string tls;          ///< as UCX_TLS: "posix,cma", "tcp"; empty = UCX's choice
  std::string net_devices;  ///< as UCX_NET_DEVICES: "eth0"; empty = all
  std::string port_range;   ///< "7500-7600"; empty = any
  /// The peers that the TCP port accepts, as numeric addresses; empty = any.
  std::vector<std::string> admitted;
  WireSecret secret{};  ///< derived from the run key; the same on all processes
};

class UcxPlane final : public PlaneDoor {
 public:
  /// Throws std::runtime_error with UCX's error text; std::invalid_argument for a malformed port
  /// range and a self outside the names.
  explicit UcxPlane(UcxOptions options);
  UcxPlane(const UcxPlane&) = delete;
  UcxPlane& operator=(const UcxPlane&) = delete;
  /// Closes if necessary. Detach() the store first.
  ~UcxPlane() override;

  std::vector<std::byte> address() const override;
  /// Sends to a process with an empty address are not allowed: another plane reaches it.
  void Connect(std::vector<std::vector<std::byte>> addresses) override;
  std::string transport(ProcessId peer) const override;
  /// True if UCX was built for CUDA and payloads are not verified, since the host would have to
  /// read them.
  bool reads_device_memory() const override;
  /// Takes at most kCloseTime, or kAbortedCloseTime after an abort or if a peer has never answered
  /// our hello. If a peer still holds a buffer then, UCX's objects are abandoned instead of
  /// destroyed.
  void Close() override;
  static constexpr std::chrono::seconds kCloseTime{10};
  static constexpr std::chrono::seconds kAbortedCloseTime{1};

 private:
  struct Parts;
  explicit UcxPlane(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

/// The version of the loaded UCX: "1.13.1".
std::string UcxVersion();

/// Restores the default handlers of SIGILL, SIGSEGV, SIGBUS and SIGFPE, which UCX replaces when it
/// is loaded. Call it first in main, so that crashes behave normally.
void RestoreSignalHandlers();

}  // namespace troupe
