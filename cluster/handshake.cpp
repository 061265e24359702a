#include "cluster/handshake.hpp"

#include <algorithm>
#include <utility>

#include "cluster/bytes.hpp"

namespace troupe {
namespace {

// The last two bytes detect a transfer that converts line ends.
constexpr std::array<char, 8> kMagic = {'T', 'R', 'O', 'U', 'P', 'E', '\r', '\n'};

// A bit of the 32-bit purpose: the layout of an Opening is full and must not change.
constexpr std::uint32_t kTlsBit = 0x100;

std::string VersionProblem(const Opening& a, const Opening& b) {
  const Opening& low = a.from < b.from ? a : b;
  const Opening& high = a.from < b.from ? b : a;
  const auto speaks = [](const Opening& opening) {
    return "process " + std::to_string(opening.from) + " speaks wire version " +
           std::to_string(opening.version);
  };
  return speaks(high) + ", " + speaks(low) + ": they are different builds of troupe";
}

}  // namespace

std::string TlsDifference(const std::string& wants, const std::string& does_not) {
  return wants + " wants TLS, " + does_not + " does not: set cluster.tls alike";
}

std::vector<std::byte> EncodeOpening(const Opening& opening) {
  ByteWriter writer;
  writer.Raw(std::as_bytes(std::span(kMagic)));
  writer.U32(opening.version);
  writer.U32(static_cast<std::uint32_t>(opening.purpose) | (opening.tls ? kTlsBit : 0));
  writer.Field(opening.from);
  writer.Field(opening.to);
  writer.U64(opening.run);
  writer.Raw(opening.nonce);
  return writer.Take();
}

Handshake Handshake::Initiate(const RunKey& join_key, const Opening& self) {
  Handshake result(join_key, self, true);
  result.output_ = EncodeOpening(self);
  return result;
}

Handshake Handshake::Accept(const RunKey& join_key, const Opening& self) {
  return Handshake(join_key, self, false);
}

Handshake::Handshake(const RunKey& join_key, const Opening& self, bool initiator)
    : key_(join_key), self_(self), initiator_(initiator) {}

std::size_t Handshake::wanted() const {
  if (status_ != Status::kRunning) return 0;
  return (opened() ? std::tuple_size_v<RunKey::Digest> : Opening::kBytes) - input_.size();
}

void Handshake::Receive(std::span<const std::byte> bytes) {
  if (bytes.size() > wanted()) throw WireError("handshake: received more bytes than wanted");
  input_.insert(input_.end(), bytes.begin(), bytes.end());
  if (!opened()) {
    // Gives up as soon as the first bytes differ from the magic.
    const std::size_t begun = std::min(input_.size(), kMagic.size());
    if (!std::equal(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(begun),
                    std::as_bytes(std::span(kMagic)).begin())) {
      status_ = Status::kStranger;
      return;
    }
  }
  if (status_ != Status::kRunning || wanted() != 0) return;
  if (opened()) {
    ReadProof();
  } else {
    ReadOpening();
  }
}

std::vector<std::byte> Handshake::TakeOutput() { return std::exchange(output_, {}); }

bool Handshake::Exchange(Socket& socket) {
  std::array<std::byte, Opening::kBytes> bytes;
  while (socket.TryDrain(output_) && wanted() > 0) {
    const auto n = socket.TryRead(std::span(bytes).first(wanted()));
    if (!n) break;
    if (*n == 0) return false;
    Receive(std::span(bytes).first(*n));
  }
  return true;
}

void Handshake::ReadOpening() {
  std::copy(input_.begin(), input_.end(), other_bytes_.begin());
  input_.clear();
  ByteReader reader(other_bytes_);
  reader.Raw(kMagic.size());
  Opening other;
  other.version = reader.U32();
  const std::uint32_t purpose = reader.U32();
  other.purpose = static_cast<Purpose>(purpose & ~kTlsBit);
  other.tls = (purpose & kTlsBit) != 0;
  reader.Field(other.from);
  reader.Field(other.to);
  other.run = reader.U64();
  const auto nonce = reader.Raw(other.nonce.size());
  std::copy(nonce.begin(), nonce.end(), other.nonce.begin());
  other_ = other;
  if (initiator_) {
    const RunKey::Digest proof = ProofOf(true);
    output_.assign(proof.begin(), proof.end());
  } else {
    self_.purpose = other.purpose;
    self_.to = other.from;
    if (!BelongsToRun(self_.purpose)) self_.run = 0;
    output_ = EncodeOpening(self_);
  }
}

void Handshake::ReadProof() {
  RunKey::Digest claimed{};
  std::copy(input_.begin(), input_.end(), claimed.begin());
  input_.clear();
  if (!EqualDigests(claimed, ProofOf(!initiator_))) {
    status_ = Status::kStranger;
    // A marker instead of a proof: it tells a process with another key the reason. A process that
    // is closed without it was evicted and may try again.
    if (!initiator_) output_.assign(std::tuple_size_v<RunKey::Digest>, std::byte{0});
    return;
  }
  if (!initiator_) {
    const RunKey::Digest proof = ProofOf(false);
    output_.assign(proof.begin(), proof.end());
  }
  const auto transcript = Transcript("session");
  session_ = key_.Derive({reinterpret_cast<const char*>(transcript.data()), transcript.size()});
  Judge();
}

void Handshake::Judge() {
  status_ = Status::kProven;
  const Opening& initiator = initiator_ ? self_ : *other_;
  const Opening& acceptor = initiator_ ? *other_ : self_;
  if (initiator.version != acceptor.version) {
    status_ = Status::kVersion;
    problem_ = VersionProblem(initiator, acceptor);
  } else if (initiator.tls != acceptor.tls) {
    status_ = Status::kTlsDiffers;
    const Opening& wants = initiator.tls ? initiator : acceptor;
    const Opening& does_not = initiator.tls ? acceptor : initiator;
    problem_ = TlsDifference("process " + std::to_string(wants.from),
                             "process " + std::to_string(does_not.from));
  } else if (initiator.to != acceptor.from) {
    status_ = Status::kDisagrees;
    problem_ = "expected process " + std::to_string(initiator.to) + ", got process " +
               std::to_string(acceptor.from);
  } else if (initiator.from != acceptor.to || initiator.purpose != acceptor.purpose ||
             initiator.purpose < Purpose::kJoin || initiator.purpose > Purpose::kFeed) {
    status_ = Status::kDisagrees;
    problem_ = "the two sides disagree on the purpose of the connection";
  } else if (initiator.run != acceptor.run ||
             (BelongsToRun(initiator.purpose) && initiator.run == 0)) {
    status_ = Status::kDisagrees;
    problem_ = "process " + std::to_string(acceptor.from) + " is not yet or no longer in this run";
  }
}

RunKey::Digest Handshake::ProofOf(bool initiator) const {
  return key_.Authenticate(Transcript(initiator ? "initiator" : "acceptor"));
}

std::vector<std::byte> Handshake::Transcript(const std::string& label) const {
  ByteWriter writer;
  writer.Text(label);
  const auto own = EncodeOpening(self_);
  writer.Raw(initiator_ ? std::span<const std::byte>(own)
                        : std::span<const std::byte>(other_bytes_));
  writer.Raw(initiator_ ? std::span<const std::byte>(other_bytes_)
                        : std::span<const std::byte>(own));
  return writer.Take();
}

}  // namespace troupe
