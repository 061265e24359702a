#include "transport/ucx/handles.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace troupe {
namespace {

struct ReleaseConfig {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};

/// Whether the comma separated list `tls` allows `transport`.
bool MayUse(const std::string& tls, const std::string& transport) {
  std::istringstream list(tls);
  bool any = false;
  for (std::string one; std::getline(list, one, ',');) {
    if (one == transport || one == "all") return true;
    any = true;
  }
  return !any;
}

}  // namespace

void CheckUcx(ucs_status_t status, const std::string& call) {
  if (status != UCS_OK) throw UcxError(call + ": " + ucs_status_string(status));
}

UcxContext::UcxContext(const UcxSettings& settings) {
  ucp_config_t* read = nullptr;
  CheckUcx(ucp_config_read(nullptr, nullptr, &read), "ucp_config_read");
  const std::unique_ptr<ucp_config_t, ReleaseConfig> config(read);
  const auto set = [&](const char* name, const std::string& value) {
    CheckUcx(ucp_config_modify(config.get(), name, value.c_str()),
             "ucp_config_modify(" + std::string(name) + "=" + value + ")");
  };
  // UCX accepts any option of a transport and only warns later if no transport in use knows it. So
  // set each one only where it applies.
  if (!settings.tls.empty()) set("TLS", settings.tls);
  if (!settings.net_devices.empty()) set("NET_DEVICES", settings.net_devices);
  if (!settings.port_range.empty() && MayUse(settings.tls, "tcp"))
    set("PORT_RANGE", settings.port_range);
  set("KEEPALIVE_INTERVAL", "300ms");
  // Without the first, UCX denies shared memory to endpoints that report a peer's death; without
  // the second, these have no cma. The price: buffers of cancelled sends must never be reused.
  if (MayUse(settings.tls, "posix") || MayUse(settings.tls, "sysv")) set("MM_ERROR_HANDLING", "y");
  if (MayUse(settings.tls, "cma")) set("MEMORY_INVALIDATE", "y");
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  CheckUcx(ucp_init(&parameters, config.get(), &handle_), "ucp_init");
}

bool UcxContext::HasCuda() const {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  CheckUcx(ucp_context_query(handle_, &attributes), "ucp_context_query");
  return (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

ucp_request_param_t UcxRequest::Begin() {
  open_ = true;
  starting_ = true;
  status_ = UCS_INPROGRESS;
  length_ = 0;
  handle_ = nullptr;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.user_data = this;
  parameters.cb.send = [](void* handle, ucs_status_t status, void* user) {
    ucp_request_free(handle);
    static_cast<UcxRequest*>(user)->End(status);
  };
  return parameters;
}

ucp_request_param_t UcxRequest::BeginReceive(bool on_host) {
  ucp_request_param_t parameters = Begin();
  // Otherwise UCX never reports the length of a message that had arrived before.
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.memory_type = on_host ? UCS_MEMORY_TYPE_HOST : UCS_MEMORY_TYPE_CUDA;
  parameters.cb.recv = [](void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* user) {
    auto& request = *static_cast<UcxRequest*>(user);
    request.length_ = info->length;
    ucp_request_free(handle);
    request.End(status);
  };
  return parameters;
}

void UcxRequest::Settle(void* result) {
  if (result == nullptr) {
    End(UCS_OK);
  } else if (UCS_PTR_IS_ERR(result)) {
    End(UCS_PTR_STATUS(result));
  } else if (open_) {
    handle_ = result;
  }  // else the callback ran inside the call, and the handle is gone
  starting_ = false;
}

void UcxRequest::End(ucs_status_t status) {
  open_ = false;
  status_ = status;
  handle_ = nullptr;
  if (!starting_) closed_();
}

UcxWorker::UcxWorker(UcxContext& context) {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  CheckUcx(ucp_worker_create(context.get(), &parameters, &handle_), "ucp_worker_create");
}

std::vector<std::byte> UcxWorker::Address() const {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  CheckUcx(ucp_worker_query(handle_, &attributes), "ucp_worker_query");
  const auto* begin = reinterpret_cast<const std::byte*>(attributes.address);
  std::vector<std::byte> address(begin, begin + attributes.address_length);
  ucp_worker_release_address(handle_, attributes.address);
  return address;
}

int UcxWorker::EventDescriptor() const {
  int descriptor = -1;
  CheckUcx(ucp_worker_get_efd(handle_, &descriptor), "ucp_worker_get_efd");
  return descriptor;
}

bool UcxWorker::Arm() {
  const ucs_status_t status = ucp_worker_arm(handle_);
  if (status == UCS_ERR_BUSY) return false;
  CheckUcx(status, "ucp_worker_arm");
  return true;
}

void UcxWorker::SetMessageHandler(unsigned id, UcxMessageHandler handler) {
  handler_ = std::move(handler);
  ucp_am_handler_param_t parameters{};
  parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                          UCP_AM_HANDLER_PARAM_FIELD_ARG;
  parameters.id = id;
  parameters.arg = this;
  parameters.cb = [](void* user, const void* header, std::size_t size, void*, std::size_t,
                     const ucp_am_recv_param_t*) {
    static_cast<UcxWorker*>(user)->handler_({static_cast<const std::byte*>(header), size});
    return UCS_OK;  // any data is ignored
  };
  CheckUcx(ucp_worker_set_am_recv_handler(handle_, &parameters), "ucp_worker_set_am_recv_handler");
}

void UcxWorker::Receive(UcxRequest& request, std::span<std::byte> destination, std::uint64_t tag,
                        bool on_host) {
  const ucp_request_param_t parameters = request.BeginReceive(on_host);
  request.Settle(ucp_tag_recv_nbx(handle_, destination.data(), destination.size(), tag,
                                  ~ucp_tag_t{0}, &parameters));
}

void UcxWorker::Cancel(UcxRequest& request) {
  if (request.handle_ != nullptr) ucp_request_cancel(handle_, request.handle_);
}

UcxEndpoint::UcxEndpoint(UcxWorker& worker, std::span<const std::byte> address,
                         const std::string& name, std::function<void(ucs_status_t)> failed)
    : failed_(std::move(failed)) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.arg = this;
  parameters.err_handler.cb = [](void* user, ucp_ep_h, ucs_status_t status) {
    static_cast<UcxEndpoint*>(user)->failed_(status);
  };
  CheckUcx(ucp_ep_create(worker.get(), &parameters, &handle_), name + ": ucp_ep_create");
}

void UcxEndpoint::Send(UcxRequest& request, std::span<const std::byte> bytes, std::uint64_t tag) {
  const ucp_request_param_t parameters = request.Begin();
  request.Settle(ucp_tag_send_nbx(handle_, bytes.data(), bytes.size(), tag, &parameters));
}

void UcxEndpoint::SendMessage(UcxRequest& request, unsigned id, std::span<const std::byte> header) {
  const ucp_request_param_t parameters = request.Begin();
  request.Settle(
      ucp_am_send_nbx(handle_, id, header.data(), header.size(), nullptr, 0, &parameters));
}

void UcxEndpoint::Close() {
  if (handle_ == nullptr) return;
  ucp_request_param_t parameters = close_.Begin();
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  close_.Settle(ucp_ep_close_nbx(std::exchange(handle_, nullptr), &parameters));
}

std::vector<std::string> UcxEndpoint::Lanes() const {
  if (handle_ == nullptr) return {};
  struct Text {
    ~Text() { std::free(data); }  // NOLINT: open_memstream's
    char* data = nullptr;
    std::size_t size = 0;
  } text;
  std::FILE* const stream = open_memstream(&text.data, &text.size);
  if (stream == nullptr) return {};
  ucp_ep_print_info(handle_, stream);
  std::fclose(stream);
  return ParseLanes(std::string(text.data, text.size));
}

std::vector<std::string> ParseLanes(const std::string& text) {
  // "#                 lane[0]:  3:sysv/memory.0 md[2]  -> md[2]/sysv/sysdev[255] am am_bw#0"
  std::vector<std::string> lanes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t lane = line.find("lane[");
    if (lane == std::string::npos) continue;
    const std::size_t slash = line.find('/', lane);
    if (slash == std::string::npos) continue;
    const std::size_t colon = line.rfind(':', slash);
    if (colon == std::string::npos || colon < lane) continue;
    std::string name = line.substr(colon + 1, slash - colon - 1);
    // Memory has one instance, interfaces have many. After the dot is UCX's number of a path.
    if (line.compare(slash + 1, 6, "memory") != 0) {
      const std::string device = line.substr(slash, line.find(' ', slash) - slash);
      name += device.substr(0, device.rfind('.'));
    }
    if (std::find(lanes.begin(), lanes.end(), name) == lanes.end()) lanes.push_back(name);
  }
  return lanes;
}

}  // namespace troupe
