// Tensors between processes over TCP connections whose other ends have proven the run key: the
// data plane of a job, and the carrier of its tensor store, without a port.
//
// Safety. The connections are made and proven by the join (cluster/join.hpp); nothing listens. Each
// frame is numbered and carries a MAC by a key of its connection, and is looked at only after that,
// so what a third party puts into a connection ends it. With Verify::kPayload the bytes of tensors
// carry one, too; without, Verify::kOff and kHeader are the same. Nothing is encrypted here: a
// connection with TLS comes as the plain end of it.
//
// Memory. A send refers to its buffer until the bytes are with the kernel. Bytes that arrive for a
// posted receive go straight into its memory; of messages that are early at most kEarlyBudget per
// peer are kept (transport/tcp/frame.hpp).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transport/descriptor.hpp"
#include "transport/plane_door.hpp"

namespace troupe {

/// A connected stream socket, of which nothing has been read behind the proof.
struct TcpConnection {
  ProcessId peer = -1;
  Descriptor socket;
  WireSecret secret{};  ///< of this connection, the same on both sides
};

struct TcpOptions : PlaneSettings {
  std::vector<TcpConnection> connections;  ///< at most one per other process
  std::string medium = "proven tcp";       ///< what transport() says of them
};

class TcpPlane final : public PlaneDoor {
 public:
  /// Throws std::invalid_argument for connections and a self that do not fit the names,
  /// std::runtime_error when the system has no descriptor left.
  explicit TcpPlane(TcpOptions options);
  TcpPlane(const TcpPlane&) = delete;
  TcpPlane& operator=(const TcpPlane&) = delete;
  /// Closes, if that has not been done. Detach() the store before.
  ~TcpPlane() override;

  /// One byte: there is nothing to say, and an empty address stands for no plane.
  std::vector<std::byte> address() const override;
  /// The addresses are only counted.
  void Connect(std::vector<std::vector<std::byte>> addresses) override;
  std::string transport(ProcessId peer) const override;
  bool reads_device_memory() const override { return false; }
  /// At once, unless a callback is stuck: then after kCloseTime its thread is left behind.
  void Close() override;
  static constexpr std::chrono::seconds kCloseTime{10};

 private:
  struct Parts;
  explicit TcpPlane(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe
