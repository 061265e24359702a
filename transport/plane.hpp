// A data plane and its life cycle: a process opens one to exchange tensors with the others.
//
// Life cycle: construct, exchange address() over the control plane, Connect() in every process,
// use, Leave() before a barrier of the control plane, Close() after it.
//
// A failed connection is reported once, through peer_failed, and the peer's open receives fail with
// its name. The plane does not notice a stopped peer or an unplugged cable: watch for these on the
// control plane.
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

/// The settings of every plane.
struct PlaneSettings {
  ProcessId self = 0;
  std::vector<std::string> names;      ///< of all processes, for errors: {"n0", "n1"}
  Verify verify = Verify::kHeader;     ///< the same on all processes
  std::chrono::microseconds spin{0};   ///< time to poll before sleeping; above 0 it costs a core
  std::shared_ptr<AbortSignal> abort;  ///< may be null
  TensorStore* store = nullptr;        ///< the tensors others may pull; must outlive the plane
  /// Copies device memory, or a buffer in parts, to host memory for pulls. Calls `done` once, on
  /// any thread, at the latest before Close(). Empty: such pulls are refused.
  std::function<void(Buffer bytes,
                     std::function<void(Buffer on_host, const std::string& error)> done)>
      to_host;
  /// The connection to a process has failed, so the process cannot continue. Called on the plane's
  /// thread.
  std::function<void(ProcessId process, const std::string& reason)> peer_failed;
};

/// Counters of this process since the start. Counts whole messages.
struct PlaneStats {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t fetches_in_flight = 0;  ///< pulls in progress
  std::uint64_t peers_connected = 0;    ///< peers connected in both directions
  std::uint64_t strangers = 0;          ///< ignored control messages without a valid MAC
};

/// Thread-safe, except Connect, Leave, Close and the destructor, which only the owner may call.
class Plane : public DataPlane, public TensorCarrier {
 public:
  ProcessId self() const override = 0;

  /// The address that other processes need for Connect(). Not secret.
  virtual std::vector<std::byte> address() const = 0;
  /// Takes the addresses by process, including this one's. Does not wait for the others. Throws
  /// std::runtime_error naming the unreachable process and the reason, std::invalid_argument.
  virtual void Connect(std::vector<std::vector<std::byte>> addresses) = 0;
  /// The transport to `peer`: "posix + cma". Empty before Connect.
  virtual std::string transport(ProcessId peer) const = 0;
  virtual PlaneStats stats() const = 0;
  /// Whether device memory may be sent, received and pulled.
  virtual bool reads_device_memory() const = 0;
  /// Other processes are about to close: connections that fail from now on are not reported.
  virtual void Leave() = 0;
  /// Fails open receives and ends all activity within a bounded time.
  virtual void Close() = 0;
};

/// "posix + cma", or grouped by peers if they differ: "posix + cma (n1), proven tcp (n2, n3)".
std::string DescribeTransports(const Plane& plane, const std::vector<std::string>& names);

}  // namespace troupe
