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

/// What OpenSSL last said on this thread, "key values mismatch", or of files what the system said;
/// forgets it, and all before it.
std::string TlsWords();

/// A point in time as OpenSSL has it: "2024-05-01 12:00:00 UTC".
std::string TimeWords(const ASN1_TIME* time);

}  // namespace troupe
