#include "cluster/tls.hpp"

#include <array>
#include <ctime>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdexcept>
#include <utility>

#include "cluster/text.hpp"
#include "cluster/tls_relay.hpp"
#include "cluster/tls_session.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

// At the end of a process only a few goodbyes are left to send.
constexpr std::chrono::seconds kFlushTime{1};

/// Formats a time: "2024-05-01 12:00:00 UTC".
std::string TimeText(const ASN1_TIME* time) {
  std::tm utc{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &utc) != 1) return "an unknown time";
  char text[64] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

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
  if (X509_cmp_time(until, &now) < 0) {
    Refuse("certificate", files.certificate,
           "it has expired: it was valid until " + TimeText(until));
  }
  if (X509_cmp_time(from, &now) > 0) {
    Refuse("certificate", files.certificate,
           "it is not valid yet: it is valid from " + TimeText(from));
  }
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
  if (SSL_CTX_build_cert_chain(
          context, SSL_BUILD_CHAIN_FLAG_UNTRUSTED | SSL_BUILD_CHAIN_FLAG_NO_ROOT) != 1) {
    Refuse("certificate", files.certificate,
           "it is not signed by CA " + files.ca + ": " + TlsErrorText());
  }
  return result;
}

std::string HostInBrackets(const Socket& socket) {
  try {
    return " (" + socket.peer_address().host + ")";
  } catch (const SocketError&) {
    return "";  // already gone: the handshake will report it
  }
}

}  // namespace

struct TlsContext::State {
  explicit State(const TlsFiles& files) : context(MakeContext(files)) {}

  TlsHandle<SSL_CTX> context;
  TlsRelay relay;
};

TlsContext::TlsContext(TlsFiles files)
    : files_(std::move(files)), state_(std::make_unique<State>(files_)) {}

TlsContext::~TlsContext() { Flush(steady_clock::now() + kFlushTime); }

void TlsContext::Flush(Deadline deadline) const { state_->relay.Flush(deadline); }

// OpenSSL's handshake, then each side sends a proof of 32 bytes. Only the other end of this
// connection can compute it, and only a holder of the run key's session.
struct TlsHandshake::State {
  enum class Step { kHandshake, kSendProof, kReceiveProof, kDone, kFailed };

  bool Move();
  bool Send();
  bool Receive();
  /// True if the step is done; otherwise it waits or has failed.
  bool StepDone(TlsSession::Status status);
  void Fail(const std::string& cause, bool is_lost);
  RunKey::Digest ProofOf(Side side) const;

  TlsContext::State& context;
  Side self;
  std::string peer;
  RunKey session_key;
  std::chrono::milliseconds limit;
  Deadline until;
  TlsSession session;
  Step step = Step::kHandshake;
  RunKey::Digest own{};
  RunKey::Digest claimed{};
  std::size_t num_done = 0;  ///< bytes of the proof of this step
  std::string problem = {};
  bool lost = false;
};

bool TlsHandshake::State::Move() {
  switch (step) {
    case Step::kHandshake:
      if (!StepDone(session.Handshake())) return false;
      own = ProofOf(self);
      step = Step::kSendProof;
      return true;
    case Step::kSendProof:
      return Send();
    case Step::kReceiveProof:
      return Receive();
    case Step::kDone:
    case Step::kFailed:
      return false;
  }
  return false;
}

bool TlsHandshake::State::Send() {
  const auto sent = session.Write(std::as_bytes(std::span(own)).subspan(num_done));
  if (sent.status == TlsSession::Status::kBroken && session.lost()) {
    // The other side has closed: its last bytes may contain the reason.
    std::array<std::byte, 1> ignored;
    session.Read(ignored);
  }
  if (!StepDone(sent.status)) return false;
  num_done += sent.num_bytes;
  if (num_done < own.size()) return true;
  num_done = 0;
  step = Step::kReceiveProof;
  return true;
}

bool TlsHandshake::State::Receive() {
  const auto got = session.Read(std::as_writable_bytes(std::span(claimed)).subspan(num_done));
  if (!StepDone(got.status)) return false;
  num_done += got.num_bytes;
  if (num_done < claimed.size()) return true;
  if (EqualDigests(claimed, ProofOf(OtherSide(self)))) {
    step = Step::kDone;
  } else {
    Fail("it is not the process that proved the run key (man in the middle?)", false);
  }
  return false;
}

bool TlsHandshake::State::StepDone(TlsSession::Status status) {
  if (status == TlsSession::Status::kEnd) Fail("it closed the connection", true);
  if (status == TlsSession::Status::kBroken) Fail(session.problem(), session.lost());
  return status == TlsSession::Status::kDone;
}

void TlsHandshake::State::Fail(const std::string& cause, bool is_lost) {
  step = Step::kFailed;
  problem = peer + ": TLS handshake failed: " + cause;
  lost = is_lost;
  // Lets the other side read our alert before the end of the connection, instead of a reset.
  session.socket().FinishWriting();
  session.socket().Discard();
}

RunKey::Digest TlsHandshake::State::ProofOf(Side side) const {
  const RunKey::Digest secret = session.Export(
      side == Side::kInitiator ? "EXPORTER-troupe-initiator" : "EXPORTER-troupe-acceptor");
  return session_key.Derive("tls").Authenticate(secret);
}

TlsHandshake::TlsHandshake(const TlsContext& context, ProvenSocket plain, Side self,
                           const std::string& peer, std::chrono::milliseconds limit) {
  std::string called = peer + HostInBrackets(plain.socket);
  TlsContext::State& shared = *context.state_;
  TlsSession session(shared.context.get(), std::move(plain.socket), self, context.files().ca);
  state_ = std::make_unique<State>(State{shared, self, std::move(called), plain.session, limit,
                                         steady_clock::now() + limit, std::move(session)});
}

TlsHandshake::~TlsHandshake() = default;
TlsHandshake::TlsHandshake(TlsHandshake&&) noexcept = default;

int TlsHandshake::fd() const { return state_->session.socket().fd(); }
short TlsHandshake::events() const { return state_->session.wants(); }
Deadline TlsHandshake::until() const { return state_->until; }
const std::string& TlsHandshake::problem() const { return state_->problem; }
bool TlsHandshake::lost() const { return state_->lost; }

TlsHandshake::Status TlsHandshake::Advance(Deadline now) {
  try {
    while (state_->Move()) continue;
  } catch (const std::exception& error) {
    state_->Fail(error.what(), true);
  }
  if (state_->step == State::Step::kDone) return Status::kDone;
  if (state_->step == State::Step::kFailed) return Status::kFailed;
  if (now < state_->until) return Status::kRunning;
  const std::string time = InSeconds(state_->limit);
  state_->Fail(state_->session.received()
                   ? "it was not done within " + time
                   : "it does not speak TLS (nothing came within " + time + ")",
               true);
  return Status::kFailed;
}

ProvenSocket TlsHandshake::Take() {
  auto [near, far] = Socket::Pair();
  Socket wire = state_->session.socket().Duplicate();
  state_->context.relay.Add(std::move(state_->session), std::move(far));
  return {std::move(near), state_->session_key, std::move(wire)};
}

}  // namespace troupe
