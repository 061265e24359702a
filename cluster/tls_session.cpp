#include "cluster/tls_session.hpp"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdexcept>
#include <utility>

#include "cluster/text.hpp"

namespace troupe {
namespace {

TlsSession::Wire& WireOf(BIO* bio) { return *static_cast<TlsSession::Wire*>(BIO_get_data(bio)); }

int ReadWire(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  TlsSession::Wire& wire = WireOf(bio);
  try {
    const std::span bytes(reinterpret_cast<std::byte*>(data), static_cast<std::size_t>(size));
    const auto n = wire.socket.TryRead(bytes);
    if (!n) {
      BIO_set_retry_read(bio);
      return -1;
    }
    if (*n == 0) wire.ended = true;
    if (*n > 0 && wire.first_byte < 0) wire.first_byte = std::to_integer<int>(bytes[0]);
    return static_cast<int>(*n);
  } catch (const std::exception& error) {
    wire.error = error.what();
    return -1;
  }
}

int WriteWire(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  TlsSession::Wire& wire = WireOf(bio);
  try {
    const std::size_t n = wire.socket.TryWrite(
        {reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
    if (n > 0) return static_cast<int>(n);
    BIO_set_retry_write(bio);
    return -1;
  } catch (const std::exception& error) {
    wire.error = error.what();
    return -1;
  }
}

long ControlWire(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return WireOf(bio).ended ? 1 : 0;
    default:
      return 0;
  }
}

/// Lets OpenSSL read and write a Socket, without SIGPIPE and with the system's error texts.
BIO_METHOD* MakeSocketMethod() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  if (method == nullptr || BIO_meth_set_read(method, ReadWire) != 1 ||
      BIO_meth_set_write(method, WriteWire) != 1 || BIO_meth_set_ctrl(method, ControlWire) != 1)
    throw std::runtime_error("TLS: " + TlsErrorText());
  return method;
}

/// The meaning of the other side's alert.
std::string AlertProblem(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "it does not accept this process's certificate: not signed by its CA";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "it considers this process's certificate expired (are the clocks right?)";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "it requires a certificate from this process";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "it does not speak TLS 1.3";
    default:
      return "";
  }
}

bool IsTlsRecord(int first_byte) { return first_byte == 0x15 || first_byte == 0x16; }

}  // namespace

std::string TlsErrorText() {
  const char* details = "";
  const unsigned long error = ERR_peek_last_error_all(nullptr, nullptr, nullptr, &details, nullptr);
  // For files the system's error precedes OpenSSL's own.
  const unsigned long first = ERR_peek_error();
  const char* reason = ERR_reason_error_string(error);
  std::string result = reason != nullptr ? reason : "OpenSSL error " + std::to_string(error);
  if (ERR_SYSTEM_ERROR(first)) {
    result = SystemWords(ERR_GET_REASON(first));
  } else if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED && *details != 0) {
    const std::string text = details;
    result = text.substr(text.find(':') + 1);
  }
  ERR_clear_error();
  return result;
}

TlsSession::TlsSession(SSL_CTX* context, Socket plain, Side self, std::string ca)
    : wire_(std::make_unique<Wire>()), ssl_(SSL_new(context)), ca_(std::move(ca)) {
  // Shared by all connections and never freed: they may outlive any owner of it.
  static BIO_METHOD* const method = MakeSocketMethod();
  wire_->socket = std::move(plain);
  BIO* bio = BIO_new(method);
  if (!ssl_ || bio == nullptr) {
    BIO_free(bio);
    throw std::runtime_error("TLS: " + TlsErrorText());
  }
  BIO_set_data(bio, wire_.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (self == Side::kInitiator) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

TlsSession::~TlsSession() = default;
TlsSession::TlsSession(TlsSession&&) noexcept = default;

TlsSession::Status TlsSession::Handshake() {
  ERR_clear_error();
  return Judge(SSL_do_handshake(ssl_.get()));
}

TlsSession::Transfer TlsSession::Read(std::span<std::byte> bytes) {
  ERR_clear_error();
  Transfer transfer;
  transfer.status = Judge(SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &transfer.num_bytes));
  return transfer;
}

TlsSession::Transfer TlsSession::Write(std::span<const std::byte> bytes) {
  ERR_clear_error();
  Transfer transfer;
  transfer.status =
      Judge(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &transfer.num_bytes));
  return transfer;
}

TlsSession::Status TlsSession::SendGoodbye() {
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  // 0: our goodbye is sent. The other side's has not arrived and is not required.
  return result >= 0 ? Status::kDone : Judge(result);
}

RunKey::Digest TlsSession::Export(const std::string& label) const {
  RunKey::Digest secret{};
  ERR_clear_error();
  if (SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(secret.data()),
                                 secret.size(), label.data(), label.size(), nullptr, 0, 0) != 1)
    throw std::runtime_error("TLS: " + TlsErrorText());
  return secret;
}

TlsSession::Status TlsSession::Judge(int result) {
  if (result == 1) return Status::kDone;
  const int error = SSL_get_error(ssl_.get(), result);
  switch (error) {
    case SSL_ERROR_WANT_READ:
      wants_ = POLLIN;
      return Status::kAgain;
    case SSL_ERROR_WANT_WRITE:
      wants_ = POLLOUT;
      return Status::kAgain;
    case SSL_ERROR_ZERO_RETURN:
      return Status::kEnd;
    default:
      Diagnose(error);
      return Status::kBroken;
  }
}

void TlsSession::Diagnose(int error) {
  const unsigned long code = ERR_peek_last_error();
  const int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const long verified = SSL_get_verify_result(ssl_.get());
  const bool reset = error == SSL_ERROR_SYSCALL && !wire_->error.empty();
  lost_ = false;
  if (reset) {
    lost_ = true;
    problem_ = wire_->error;
  } else if (wire_->ended) {
    lost_ = true;
    problem_ = "it closed the connection";
  } else if (wire_->first_byte >= 0 && !IsTlsRecord(wire_->first_byte)) {
    problem_ = "it does not speak TLS";
  } else if (reason == SSL_R_UNSUPPORTED_PROTOCOL) {
    problem_ = "it does not speak TLS 1.3";
  } else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    problem_ = "it presented no certificate";
  } else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    problem_ = CertificateProblem(verified);
  } else {
    problem_ = AlertProblem(reason);
    if (problem_.empty()) problem_ = TlsErrorText();
  }
  ERR_clear_error();
}

std::string TlsSession::CertificateProblem(long verified) const {
  switch (verified) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its certificate is not signed by CA " + ca_;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate expired (are the clocks right?)";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet (are the clocks right?)";
    default:
      return std::string("its certificate is refused: ") + X509_verify_cert_error_string(verified);
  }
}

}  // namespace troupe
