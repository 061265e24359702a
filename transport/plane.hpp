// A data plane with its life: what a process opens to exchange tensors with the others.
//
// Order of a life: construct, exchange address() over the control plane, Connect() in every
// process, use, Leave() before a barrier of the control plane, Close() after it.
//
// A peer whose connection fails is reported once, by peer_failed, and its open receives fail with
// its name. A stopped peer or a pulled cable is not noticed here: watch it on the control plane.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/data_plane.hpp"
#include "transport/tensor_store.hpp"
#include "transport/wire_key.hpp"

namespace troupe {

/// What every plane needs.
struct PlaneSettings {
  ProcessId self = 0;
  std::vector<std::string> names;      ///< of all processes, for errors: {"n0", "n1"}
  Verify verify = Verify::kHeader;     ///< the same on all processes
  std::chrono::microseconds spin{0};   ///< to look for work before sleeping: worth a core, or 0
  std::shared_ptr<AbortSignal> abort;  ///< may be null
  TensorStore* store = nullptr;        ///< whose tensors others may pull; must outlive the plane
  /// Brings bytes of a device, or in parts, to memory of the host, for those who pull them; `done`
  /// is called once, on any thread, until Close() at the latest. Empty: such pulls are refused.
  std::function<void(Buffer bytes, std::function<void(Buffer here, const std::string& error)> done)>
      to_host;
  /// The connection of a process has failed, which it will not survive. On the plane's thread.
  std::function<void(ProcessId process, const std::string& reason)> peer_failed;
};

/// Since the start, of this process. Messages are those that were sent or received whole.
struct PlaneStats {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t fetches_in_flight = 0;  ///< pulls that wait for their bytes
  std::uint64_t peers_connected = 0;    ///< that can be heard and hear us
  std::uint64_t strangers = 0;          ///< control messages without the right MAC, ignored
};

/// Thread-safe, but for Connect, Leave, Close and the destructor: those are its owner's.
class Plane : public DataPlane, public TensorCarrier {
 public:
  ProcessId self() const override = 0;

  /// What the others need for Connect(). Not secret.
  virtual std::vector<std::byte> address() const = 0;
  /// By process, with our own among them. Does not wait for the others. Throws std::runtime_error
  /// naming who cannot be reached and why, std::invalid_argument.
  virtual void Connect(std::vector<std::vector<std::byte>> addresses) = 0;
  /// What the connection to `peer` runs over: "posix + cma". Empty before Connect.
  virtual std::string transport(ProcessId peer) const = 0;
  virtual PlaneStats stats() const = 0;
  /// Whether memory of devices may be sent, received and pulled.
  virtual bool reads_device_memory() const = 0;
  /// Others are about to close: connections that fail from now on are not reported.
  virtual void Leave() = 0;
  /// Open receives fail, everything ends, within a bounded time.
  virtual void Close() = 0;
};

/// "posix + cma", or by peers where they differ: "posix + cma (n1), proven tcp (n2, n3)".
std::string DescribeTransports(const Plane& plane, const std::vector<std::string>& names);

}  // namespace troupe
