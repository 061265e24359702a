// Moves tensors between processes over TCP connections whose other ends have proven the run key: a
// job's data plane and the carrier of its tensor store. Opens no port.
//
// Safety. The join makes and authenticates the connections (cluster/join.hpp); nothing listens.
// Each frame is numbered and carries a MAC with a key of its connection, which is checked before
// anything else. So bytes injected by a third party end the connection. With Verify::kPayload the
// bytes of tensors also have a MAC; otherwise Verify::kOff and kHeader are the same. Nothing is
// encrypted here: for TLS, pass the plain end of the connection.
//
// Memory. A send refers to its buffer until the kernel has the bytes. Bytes for a posted receive
// are read directly into its memory. Of early messages at most kEarlyBudget per peer are kept
// (transport/tcp/frame.hpp).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transport/descriptor.hpp"
#include "transport/plane_door.hpp"

namespace troupe {

/// A connected stream socket. Nothing after the proof has been read from it.
struct TcpConnection {
  ProcessId peer = -1;
  Descriptor socket;
  WireSecret secret{};  ///< of this connection, the same on both sides
};

struct TcpOptions : PlaneSettings {
  std::vector<TcpConnection> connections;  ///< at most one per other process
  std::string medium = "proven tcp";       ///< the result of transport() for these peers
};

class TcpPlane final : public PlaneDoor {
 public:
  /// Throws std::invalid_argument for connections or a self outside the names, std::runtime_error
  /// if the process is out of descriptors.
  explicit TcpPlane(TcpOptions options);
  TcpPlane(const TcpPlane&) = delete;
  TcpPlane& operator=(const TcpPlane&) = delete;
  /// Closes if necessary. Detach() the store first.
  ~TcpPlane() override;

  /// One byte: no address is needed, but an empty one means no plane.
  std::vector<std::byte> address() const override;
  /// Only the number of addresses is checked.
  void Connect(std::vector<std::vector<std::byte>> addresses) override;
  std::string transport(ProcessId peer) const override;
  bool reads_device_memory() const override { return false; }
  /// Closes at once, unless a callback is stuck: then abandons its thread after kCloseTime.
  void Close() override;
  static constexpr std::chrono::seconds kCloseTime{10};

 private:
  struct Parts;
  explicit TcpPlane(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe
