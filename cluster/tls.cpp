#include "cluster/tls.hpp"

#include <ctime>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdexcept>
#include <utility>

#include "cluster/tls_context.hpp"
#include "cluster/tls_session.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

// At the end of a process only a few goodbyes are left to send.
constexpr std::chrono::seconds kFlushTime{1};

[[noreturn]] void Refuse(const std::string& kind, const std::string& path,
                         const std::string& reason) {
  throw std::runtime_error("TLS " + kind + " " + path + ": " + reason);
}

/// Prevents OpenSSL from asking for a key's password on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

void CheckValidNow(const TlsFiles& files, const X509* certificate) {
  const ASN1_TIME* from = X509_get0_notBefore(certificate);
  const ASN1_TIME* until = X509_get0_notAfter(certificate);
  std::time_t now = std::time(nullptr);
  if (X509_cmp_time(until, &now) < 0)
    Refuse("certificate", files.certificate,
           "it has expired: it was valid until " + TimeText(until));
  if (X509_cmp_time(from, &now) > 0)
    Refuse("certificate", files.certificate,
           "it is not valid yet: it is valid from " + TimeText(from));
}

TlsHandle<SSL_CTX> MakeContext(const TlsFiles& files) {
  ERR_clear_error();
  TlsHandle<SSL_CTX> result(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = result.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1)
    throw std::runtime_error("TLS: " + TlsErrorText());
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Reads header and body of a small record in one call.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_default_passwd_cb(context, NoPassword);

  if (SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1)
    Refuse("CA", files.ca, TlsErrorText());
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
    Refuse("certificate", files.certificate, TlsErrorText());
  CheckValidNow(files, SSL_CTX_get0_certificate(context));
  // OpenSSL checks the key against the certificate.
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    Refuse("key", files.key, TlsErrorText() + " (certificate " + files.certificate + ")");
  if (SSL_CTX_build_cert_chain(context,
                               SSL_BUILD_CHAIN_FLAG_UNTRUSTED | SSL_BUILD_CHAIN_FLAG_NO_ROOT) != 1)
    Refuse("certificate", files.certificate,
           "it is not signed by CA " + files.ca + ": " + TlsErrorText());
  return result;
}

}  // namespace

TlsContext::TlsContext(TlsFiles files) : files_(std::move(files)) {
  auto context = MakeContext(files_);
  auto method = MakeSocketMethod();
  state_ = std::make_unique<State>(std::move(method), std::move(context));
}

TlsContext::~TlsContext() { Flush(steady_clock::now() + kFlushTime); }

void TlsContext::Flush(Deadline deadline) const { state_->relay.Flush(deadline); }

}  // namespace troupe
