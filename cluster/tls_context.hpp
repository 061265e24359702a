// The implementation of TlsContext. For cluster/tls*.cpp only.
#pragma once

#include <utility>

#include "cluster/tls.hpp"
#include "cluster/tls_handles.hpp"
#include "cluster/tls_relay.hpp"

namespace troupe {

struct TlsContext::State {
  State(TlsHandle<BIO_METHOD> method_in, TlsHandle<SSL_CTX> context_in)
      : method(std::move(method_in)), context(std::move(context_in)) {}

  TlsHandle<BIO_METHOD> method;
  TlsHandle<SSL_CTX> context;
  TlsRelay relay;  ///< last: its thread uses the above
};

}  // namespace troupe
