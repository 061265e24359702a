// Tensors between processes over UCX: the data plane of a job, and the carrier of its tensor store.
//
// Order of a life: construct, exchange address() over the control plane, Connect() everywhere, use,
// Leave() before a barrier of the control plane, Close() after it. fork() only before the first of
// these objects is made.
//
// Safety. Who does not have the job's secret can neither guess where a message would go nor ask for
// one; with a header, what arrives was meant for this place. Nothing is encrypted. A worker listens
// on a port if its transports include tcp: give it one network that the job may trust.
//
// Failures. A peer whose connection fails is reported once, by peer_failed, and its open receives
// fail with its name. That a peer has stopped or that a cable was pulled is not noticed here: watch
// it on the control plane.
//
// Memory. What a send used stays referred to until the bytes are out; if it was cut off, until the
// plane is gone. A receive that failed while its bytes were coming (its peer is stuck) may write
// into its destination as long as the plane lives: the handle is kept, so wrap owned memory.
#pragma once

#include <array>
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
#include "transport/ucx/wire.hpp"

namespace troupe {

struct UcxOptions {
  ProcessId self = 0;
  std::vector<std::string> names;     ///< of all processes, for errors: {"n0", "n1"}
  std::string tls;                    ///< as UCX_TLS: "posix,sysv,cma", "tcp"; empty = UCX's choice
  std::string net_devices;            ///< as UCX_NET_DEVICES: "eth0"; empty = all
  std::string port_range;             ///< "7500-7600"; empty = any
  WireSecret secret{};                ///< derived from the run key; the same on all processes
  Verify verify = Verify::kHeader;    ///< the same on all processes
  std::chrono::microseconds spin{0};  ///< to look for work before sleeping: worth a core, or 0
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
struct UcxStats {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t fetches_in_flight = 0;  ///< pulls that wait for their bytes
  std::uint64_t peers_connected = 0;    ///< whose hello has come, and our answer gone
  std::uint64_t strangers = 0;          ///< control messages without the right MAC, ignored
};

/// Thread-safe, but for Connect, Leave, Close and the destructor: those are its owner's.
class UcxPlane : public DataPlane, public TensorCarrier {
 public:
  /// Throws std::runtime_error in the words of UCX; std::invalid_argument for a port range that is
  /// none and a self outside the names.
  explicit UcxPlane(UcxOptions options);
  UcxPlane(const UcxPlane&) = delete;
  UcxPlane& operator=(const UcxPlane&) = delete;
  /// Closes, if that has not been done. Detach() the store before.
  ~UcxPlane() override;

  /// What the others need for Connect(). Not secret.
  std::vector<std::byte> address() const;
  /// By process, with our own among them. Does not wait for the others. Throws std::runtime_error
  /// naming who cannot be reached and UCX's words, std::invalid_argument.
  void Connect(std::vector<std::vector<std::byte>> addresses);
  /// What the connections run over: "sysv + cma", or "sysv + cma (n1), tcp/eth0 (n2, n3)". Empty
  /// before Connect and for a process that is alone.
  std::string transports() const;
  UcxStats stats() const;
  /// Whether memory of devices may be sent, received and pulled: UCX was built for CUDA, and no
  /// payload is verified, which the host would have to read.
  bool reads_device_memory() const;

  /// Others are about to close: endpoints that fail from now on are not reported.
  void Leave();
  /// Open receives fail, everything ends. Takes at most kCloseTime, and kAbortedCloseTime after an
  /// abort or while somebody has never answered our hello; if a peer still holds something then,
  /// what UCX has is left behind rather than destroyed.
  void Close();
  static constexpr std::chrono::seconds kCloseTime{10};
  static constexpr std::chrono::seconds kAbortedCloseTime{1};

  ProcessId self() const override;
  int num_processes() const override;

  /// Throws std::invalid_argument (a process that is not another one of the job, a buffer that is
  /// not here or on a device that UCX does not read, a stream that is reserved), std::logic_error
  /// before Connect. After an abort, after Close, and to a process that has failed, a send is
  /// dropped, `sent` uncalled.
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  /// Throws like Send.
  void Receive(ProcessId from, Label label, Buffer destination, std::string what,
               std::function<void()> received,
               std::function<void(const std::string& error)> failed) override;

  void Pull(ProcessId home, std::uint64_t key, std::int64_t offset, Buffer destination,
            std::string what, std::function<void()> received,
            std::function<void(const std::string& error)> failed) override;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override;

 private:
  struct Parts;
  void CheckPeer(ProcessId process, const char* what) const;

  std::unique_ptr<Parts> parts_;
};

/// "1.13.1": of the UCX that is loaded.
std::string UcxVersion();

/// UCX takes over SIGILL, SIGSEGV, SIGBUS and SIGFPE when it is loaded. First thing in main: gives
/// them back their default, so that a crash is a crash.
void RestoreSignalHandlers();

}  // namespace troupe
