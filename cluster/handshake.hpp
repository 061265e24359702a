// Two processes prove to each other that they have the run key, before anything else is parsed.
//
//   initiator                              acceptor
//   Opening: from, to, purpose,       ──▶
//            a nonce                  ◀──  Opening: the acceptor's
//   Proof                             ──▶  wrong: 32 zero bytes, then closed
//                                     ◀──  Proof
//
// A Proof is an HMAC over the role and both Openings, with a key derived from the run key. The
// fresh nonce of each side makes a recorded Proof useless, the role one that is sent back. The
// layout of an Opening never changes, so two versions that both have the key can report which they
// are. Sizes and layouts: docs/wire.md.
//
// Receive and TakeOutput are pure: bytes in, bytes out, no socket, no clock. Exchange applies them to
// a socket.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

/// The version of everything sent between processes: the Hello, the Roster, the heartbeat.
inline constexpr std::uint32_t kWireVersion = 4;

/// The time limit of a handshake, and again of TLS after it, on either side.
inline constexpr std::chrono::milliseconds kHandshakeTime{2000};

/// The purpose of a connection.
enum class Purpose : std::uint32_t {
  kJoin = 1,
  kControl = 2,
  kHeartbeat = 3,
  kTensors = 4,
  kFeed = 5  ///< of a feed machine (feed/message.hpp)
};
/// Whether both ends must have met as processes of one run before.
inline bool BelongsToRun(Purpose purpose) {
  return purpose != Purpose::kJoin && purpose != Purpose::kFeed;
}

struct Opening {
  static constexpr std::size_t kBytes = 64;
  using Nonce = std::array<std::byte, 32>;

  std::uint32_t version = kWireVersion;
  Purpose purpose = Purpose::kJoin;
  ProcessId from = 0;
  ProcessId to = 0;
  std::uint64_t run = 0;  ///< Roster::nonce; 0 before there is one
  Nonce nonce{};
  bool tls = false;  ///< TLS follows the handshake
};

/// A connection whose other end has proven the run key.
struct ProvenSocket {
  Socket socket;
  RunKey session;    ///< only the two ends have it
  Socket wire = {};  ///< with TLS, the underlying TCP socket, for queries only; may be closed
};

/// One side of one handshake.
class Handshake {
 public:
  enum class Status {
    kRunning,
    kProven,      ///< both have the key and agree; the last output may still have to be sent
    kStranger,    ///< the other does not have the key, or, if !opened(), is not a Troupe process
    kDisagrees,   ///< the other has the key, but is not the expected process: see problem()
    kVersion,     ///< the other has the key, but uses another wire version: see problem()
    kTlsDiffers,  ///< the other has the key, but only one of the two wants TLS: see problem()
  };

  /// `self.nonce` must be fresh random bytes. `join_key` is RunKey::Derive("join").
  static Handshake Initiate(const RunKey& join_key, const Opening& self);
  /// Uses version, from, run, nonce and tls of `self`. Accepts purposes that
  /// belong to a run only from processes that know it.
  static Handshake Accept(const RunKey& join_key, const Opening& self);

  /// Bytes to read now. Never read more: further bytes belong to the connection's next user.
  std::size_t wanted() const;
  /// Takes at most wanted() bytes, in any pieces.
  void Receive(std::span<const std::byte> bytes);
  /// Returns the bytes to send now.
  std::vector<std::byte> TakeOutput();
  /// Sends the output and receives what is wanted, as far as possible without blocking. False once
  /// the other side has closed. Throws SocketError.
  bool Exchange(Socket& socket);
  /// False while Exchange has bytes left to send.
  bool flushed() const { return output_.empty(); }

  Status status() const { return status_; }
  /// For kDisagrees, kVersion and kTlsDiffers; the same text on both sides.
  const std::string& problem() const { return problem_; }
  /// True once any byte of the other has arrived.
  bool started() const { return opened() || !input_.empty(); }
  /// True once the other's Opening has arrived.
  bool opened() const { return other_.has_value(); }
  /// The other's Opening. Only when opened; trustworthy only when proven.
  const Opening& other() const { return *other_; }
  /// The key of this connection. Only when proven.
  const RunKey& session() const { return *session_; }

 private:
  Handshake(const RunKey& join_key, const Opening& self, bool initiator);
  void ReadOpening();
  void ReadProof();
  void Judge();
  RunKey::Digest ProofOf(bool initiator) const;
  std::vector<std::byte> Transcript(const std::string& label) const;

  RunKey key_;
  Opening self_;
  bool initiator_;
  Status status_ = Status::kRunning;
  std::string problem_;
  std::vector<std::byte> input_;  ///< the incomplete frame
  std::vector<std::byte> output_;
  std::optional<Opening> other_;
  std::array<std::byte, Opening::kBytes> other_bytes_{};
  std::optional<RunKey> session_;
};

/// "n2 wants TLS, n0 does not: set cluster.tls alike"
std::string TlsDifference(const std::string& wants, const std::string& does_not);

/// The wire format of an Opening. For the handshake and for tests.
std::vector<std::byte> EncodeOpening(const Opening& opening);

}  // namespace troupe
