// Tensors between processes over UCX: the data plane of a job, and the carrier of its tensor store.
//
// fork() only before the first of these objects is made.
//
// Safety. Who does not have the job's secret can neither guess where a message would go nor ask for
// one; with a header, what arrives was meant for this place. Nothing is encrypted. A worker listens
// on a port if its transports include tcp: give it one network that the job may trust.
//
// Memory. What a send used stays referred to until the bytes are out; if it was cut off, until the
// plane is gone. A receive that failed while its bytes were coming (its peer is stuck) may write
// into its destination as long as the plane lives: the handle is kept, so wrap owned memory.
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
  /// Whose packets the TCP port takes, addresses in digits; empty = anybody's.
  std::vector<std::string> admitted;
  WireSecret secret{};  ///< derived from the run key; the same on all processes
};

class UcxPlane final : public PlaneDoor {
 public:
  /// Throws std::runtime_error in the words of UCX; std::invalid_argument for a malformed port
  /// range and a self outside the names.
  explicit UcxPlane(UcxOptions options);
  UcxPlane(const UcxPlane&) = delete;
  UcxPlane& operator=(const UcxPlane&) = delete;
  /// Closes, if that has not been done. Detach() the store before.
  ~UcxPlane() override;

  std::vector<std::byte> address() const override;
  /// A process with an empty address is not this plane's: nothing may be sent to it.
  void Connect(std::vector<std::vector<std::byte>> addresses) override;
  std::string transport(ProcessId peer) const override;
  /// UCX was built for CUDA, and no payload is verified, which the host would have to read.
  bool reads_device_memory() const override;
  /// Takes at most kCloseTime, and kAbortedCloseTime after an abort or while a peer has never
  /// answered our hello; if a peer still holds something then, what UCX has is left behind rather
  /// than destroyed.
  void Close() override;
  static constexpr std::chrono::seconds kCloseTime{10};
  static constexpr std::chrono::seconds kAbortedCloseTime{1};

 private:
  struct Parts;
  explicit UcxPlane(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

/// "1.13.1": of the UCX that is loaded.
std::string UcxVersion();

/// UCX takes over SIGILL, SIGSEGV, SIGBUS and SIGFPE when it is loaded. First thing in main: gives
/// them back their default, so that a crash is a crash.
void RestoreSignalHandlers();

}  // namespace troupe
