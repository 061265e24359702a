// Owners of UCX's handles (1.13). No other file calls UCX, except to query its version. Comments at
// the calls explain UCX's pitfalls.
//
// A worker and its objects are used by one thread at a time, except for UcxWorker::Signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "transport/pump.hpp"

namespace troupe {

struct UcxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws UcxError "CALL: UCX's error text" unless `status` is UCS_OK.
void CheckUcx(ucs_status_t status, const std::string& call);

struct UcxSettings {
  std::string tls;          ///< as in UCX_TLS; empty = UCX's choice
  std::string net_devices;  ///< as in UCX_NET_DEVICES; empty = all
  std::string port_range;   ///< "7500-7600"; empty = any
};

class UcxContext {
 public:
  explicit UcxContext(const UcxSettings& settings);
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ~UcxContext() { ucp_cleanup(handle_); }
  ucp_context_h get() const { return handle_; }
  /// Whether this UCX was built for CUDA and finds its libraries: then it accesses device memory
  /// itself.
  bool HasCuda() const;

 private:
  ucp_context_h handle_ = nullptr;
};

/// One operation. It and the memory it uses must stay in place while it is open().
class UcxRequest {
 public:
  /// Calls `closed`, inside UcxWorker::Progress or Cancel, if the operation ends after the call
  /// that starts it. `closed` must not destroy this object.
  explicit UcxRequest(std::function<void()> closed) : closed_(std::move(closed)) {}
  UcxRequest(const UcxRequest&) = delete;
  UcxRequest& operator=(const UcxRequest&) = delete;

  bool open() const { return open_; }
  /// The status of an ended operation; UCS_OK before the first one.
  ucs_status_t status() const { return status_; }
  /// The number of bytes received.
  std::size_t length() const { return length_; }

 private:
  friend class UcxWorker;
  friend class UcxEndpoint;
  ucp_request_param_t Begin();
  ucp_request_param_t BeginReceive(bool on_host);
  void Settle(void* result);
  void End(ucs_status_t status);

  std::function<void()> closed_;
  bool open_ = false;
  bool starting_ = false;
  ucs_status_t status_ = UCS_OK;
  std::size_t length_ = 0;
  void* handle_ = nullptr;
};

/// Called with the header of every active message with the worker's id. The header is only valid
/// during the call.
using UcxMessageHandler = std::function<void(std::span<const std::byte> header)>;

/// Must be destroyed only without open requests and endpoints: UCX aborts otherwise.
class UcxWorker final : public PumpWorker {
 public:
  explicit UcxWorker(UcxContext& context);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker() override { ucp_worker_destroy(handle_); }

  ucp_worker_h get() const { return handle_; }
  std::vector<std::byte> Address() const;
  bool Progress() override { return ucp_worker_progress(handle_) != 0; }
  /// For polling only; never read it.
  int EventDescriptor() const override;
  bool Arm() override;
  void Signal() override { ucp_worker_signal(handle_); }

  void SetMessageHandler(unsigned id, UcxMessageHandler handler);
  /// Receives a message with exactly `tag` into memory of the host or of a device. The status may
  /// report a message that is too long. UCX accepts a shorter one, so check length().
  void Receive(UcxRequest& request, std::span<std::byte> destination, std::uint64_t tag,
               bool on_host = true);
  /// A request only: the memory is free when the operation ends.
  void Cancel(UcxRequest& request);

 private:
  ucp_worker_h handle_ = nullptr;
  UcxMessageHandler handler_;
};

class UcxEndpoint {
 public:
  /// Calls `failed` at most once, inside UcxWorker::Progress; it must only record the failure.
  /// Throws UcxError, beginning with `name`.
  UcxEndpoint(UcxWorker& worker, std::span<const std::byte> address, const std::string& name,
              std::function<void(ucs_status_t)> failed);
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  void Send(UcxRequest& request, std::span<const std::byte> bytes, std::uint64_t tag);
  void SendMessage(UcxRequest& request, unsigned id, std::span<const std::byte> header);
  /// Ends all open operations on this side. Call it once; nothing can be sent afterwards.
  void Close();
  bool closed() const { return handle_ == nullptr; }
  /// Whether Close() is in progress.
  bool closing() const { return close_.open(); }
  /// Its transports, without duplicates: {"sysv", "cma"}.
  std::vector<std::string> Lanes() const;

 private:
  ucp_ep_h handle_ = nullptr;
  std::function<void(ucs_status_t)> failed_;
  UcxRequest close_{[] {}};
};

/// Parses the transports from the output of ucp_ep_print_info.
std::vector<std::string> ParseLanes(const std::string& text);

}  // namespace troupe
