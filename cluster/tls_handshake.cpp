// TlsHandshake: OpenSSL's handshake, then each side sends a proof of 32 bytes. Only the other end
// of this connection can compute it and, with a run key's session, only a holder of that session.
#include <array>
#include <optional>
#include <poll.h>
#include <utility>
#include <vector>

#include "cluster/text.hpp"
#include "cluster/tls.hpp"
#include "cluster/tls_context.hpp"
#include "cluster/tls_session.hpp"

namespace troupe {
namespace {

std::string AddressOf(const Socket& socket) {
  try {
    return " (" + socket.peer_address().host + ")";
  } catch (const SocketError&) {
    return "";  // already gone: the handshake will report it
  }
}

}  // namespace

struct TlsHandshake::State {
  enum class Step { kHandshake, kSendProof, kReceiveProof, kDone, kFailed };

  bool Move();
  void Prove();
  bool Send();
  bool Receive();
  /// True if the step is done; otherwise it waits or has failed.
  bool StepDone(TlsSession::Status status);
  void Fail(const std::string& cause, bool is_lost);
  RunKey::Digest ProofOf(Side side) const;

  TlsContext::State& context;
  Side self;
  std::string peer;
  std::optional<RunKey> session_key;
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
  session.FinishWriting();
  session.Drain();
}

RunKey::Digest TlsHandshake::State::ProofOf(Side side) const {
  const RunKey::Digest secret = session.Export(
      side == Side::kInitiator ? "EXPORTER-troupe-initiator" : "EXPORTER-troupe-acceptor");
  return session_key ? session_key->Derive("tls").Authenticate(secret) : secret;
}

TlsHandshake::TlsHandshake(const TlsContext& context, Socket plain, Side self,
                           const std::string& peer, const RunKey* session) {
  std::string called = peer + AddressOf(plain);
  TlsContext::State& shared = *context.state_;
  state_ = std::make_unique<State>(State{shared, self, std::move(called),
                                         session ? std::optional(*session) : std::nullopt,
                                         TlsSession(shared.context.get(), shared.method.get(),
                                                    std::move(plain), self, context.files().ca)});
}

TlsHandshake::~TlsHandshake() = default;
TlsHandshake::TlsHandshake(TlsHandshake&&) noexcept = default;

int TlsHandshake::fd() const { return state_->session.socket().fd(); }
short TlsHandshake::events() const { return state_->session.wants(); }
const std::string& TlsHandshake::problem() const { return state_->problem; }
bool TlsHandshake::lost() const { return state_->lost; }

TlsHandshake::Status TlsHandshake::Advance() {
  try {
    while (state_->Move()) continue;
  } catch (const std::exception& error) {
    state_->Fail(error.what(), true);
  }
  switch (state_->step) {
    case State::Step::kDone:
      return Status::kDone;
    case State::Step::kFailed:
      return Status::kFailed;
    default:
      return Status::kRunning;
  }
}

void TlsHandshake::GiveUp(std::chrono::milliseconds after) {
  const std::string time = InSeconds(after);
  state_->Fail(state_->session.received()
                   ? "it was not done within " + time
                   : "it does not speak TLS (nothing came within " + time + ")",
               true);
}

SecuredSocket TlsHandshake::Take() {
  auto [near, far] = Socket::Pair();
  Socket wire = state_->session.socket().Duplicate();
  state_->context.relay.Add(std::move(state_->session), std::move(far));
  return {std::move(near), std::move(wire)};
}

}  // namespace troupe
