// What is behind TlsContext. For cluster/tls*.cpp only.
#pragma once

#include "cluster/tls.hpp"
#include "cluster/tls_handles.hpp"
#include "cluster/tls_relay.hpp"

namespace troupe {

struct TlsContext::State {
  TlsHandle<BIO_METHOD> method;
  TlsHandle<SSL_CTX> context;
  TlsRelay relay;  ///< last: its thread uses the above
};

}  // namespace troupe
