// Owners of OpenSSL's handles. For cluster/tls*.cpp only.
#pragma once

#include <memory>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <string>

namespace troupe {

struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};

template <typename T>
using TlsHandle = std::unique_ptr<T, TlsFree>;

/// OpenSSL's last error text on this thread, "key values mismatch"; for files the system's error
/// text. Clears OpenSSL's error queue.
std::string TlsErrorText();

/// Formats a time: "2024-05-01 12:00:00 UTC".
std::string TimeText(const ASN1_TIME* time);

}  // namespace troupe
