// Owners of UCX's handles (1.13): nobody else calls it, but to ask its version. What surprises
// about UCX is explained where it is dealt with.
//
// A worker and all that belongs to it are used by one thread at a time; UcxWorker::Signal alone is
// free for all.
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

/// Throws UcxError "WHAT: UCX's words" unless all is well.
void CheckUcx(ucs_status_t status, const std::string& what);

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
  /// Whether this UCX was built for CUDA and finds its libraries: then it reads and writes memory
  /// of devices itself.
  bool HasCuda() const;

 private:
  ucp_context_h handle_ = nullptr;
};

/// One operation. It must stay where it is while it is open(), and so must the memory it uses.
class UcxRequest {
 public:
  /// `closed` is called when the operation ends later than in the call that starts it, inside
  /// UcxWorker::Progress or Cancel. It must not destroy this object.
  explicit UcxRequest(std::function<void()> closed) : closed_(std::move(closed)) {}
  UcxRequest(const UcxRequest&) = delete;
  UcxRequest& operator=(const UcxRequest&) = delete;

  bool open() const { return open_; }
  /// Of an operation that is not open any more; before the first one UCS_OK.
  ucs_status_t status() const { return status_; }
  /// What a receive got, in bytes.
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

/// Gets the header of every active message with the worker's id; its memory is the caller's again
/// afterwards.
using UcxMessageHandler = std::function<void(std::span<const std::byte> header)>;

/// Destroy it when no request and no endpoint of it is open: UCX aborts otherwise.
class UcxWorker final : public PumpWorker {
 public:
  explicit UcxWorker(UcxContext& context);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker() override { ucp_worker_destroy(handle_); }

  ucp_worker_h get() const { return handle_; }
  std::vector<std::byte> Address() const;
  bool Progress() override { return ucp_worker_progress(handle_) != 0; }
  /// Never read it.
  int EventDescriptor() const override;
  bool Arm() override;
  void Signal() override { ucp_worker_signal(handle_); }

  void SetMessageHandler(unsigned id, UcxMessageHandler handler);
  /// Exactly `tag`, into memory of the host or of a device. The status may be that of a message
  /// which was too long; a shorter one is fine with UCX, so look at length().
  void Receive(UcxRequest& request, std::span<std::byte> destination, std::uint64_t tag,
               bool on_host = true);
  /// A wish: only the end of the request tells that its memory is free.
  void Cancel(UcxRequest& request);

 private:
  ucp_worker_h handle_ = nullptr;
  UcxMessageHandler handler_;
};

class UcxEndpoint {
 public:
  /// `failed` is called at most once, inside UcxWorker::Progress: note it and return. Throws
  /// UcxError, beginning with `who`.
  UcxEndpoint(UcxWorker& worker, std::span<const std::byte> address, const std::string& who,
              std::function<void(ucs_status_t)> failed);
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  void Send(UcxRequest& request, std::span<const std::byte> bytes, std::uint64_t tag);
  void SendMessage(UcxRequest& request, unsigned id, std::span<const std::byte> header);
  /// Ends what is open, on this side. Once; afterwards nothing can be sent.
  void Close();
  bool closed() const { return handle_ == nullptr; }
  /// Whether Close() has been called and has not come to its end.
  bool closing() const { return close_.open(); }
  /// What it sends over, without repetition: {"sysv", "cma"}.
  std::vector<std::string> Lanes() const;

 private:
  ucp_ep_h handle_ = nullptr;
  std::function<void(ucs_status_t)> failed_;
  UcxRequest close_{[] {}};
};

/// The transports in what ucp_ep_print_info printed.
std::vector<std::string> ParseLanes(const std::string& text);

}  // namespace troupe
