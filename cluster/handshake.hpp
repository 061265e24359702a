// Two processes prove to each other that they have the run key, before anything else is parsed.
//
//   initiator                              acceptor
//   Opening: who, to whom, what for,  ──▶
//            a nonce                  ◀──  Opening: the same of itself
//   Proof                             ──▶  wrong: 32 zero bytes, then closed
//                                     ◀──  Proof
//
// A Proof is an HMAC, with a key derived from the run key, over the role and both Openings. The
// fresh nonce of each side makes a recorded one useless, the role one that is sent back. Openings
// are of a fixed layout that no later version changes, so that two versions that both have the key
// can say which they are. Sizes and layouts: docs/wire.md.
//
// Pure: bytes in, bytes out, no socket, no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/run_key.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

/// Of everything that is sent between processes: the Hello, the Roster, the heartbeat.
inline constexpr std::uint32_t kWireVersion = 2;

/// What a connection is for.
enum class Purpose : std::uint32_t { kJoin = 1, kControl = 2, kHeartbeat = 3, kTensors = 4 };

struct Opening {
  static constexpr std::size_t kBytes = 64;
  using Nonce = std::array<std::byte, 32>;

  std::uint32_t version = kWireVersion;
  Purpose purpose = Purpose::kJoin;
  ProcessId from = 0;
  ProcessId to = 0;
  std::uint64_t run = 0;  ///< Roster::nonce, 0 while there is none
  Nonce nonce{};
  bool tls = false;  ///< what follows the handshake is to be TLS
};

/// One side of one handshake.
class Handshake {
 public:
  enum class Status {
    kRunning,
    kProven,      ///< both have the key and agree; the last output may still be to be sent
    kStranger,    ///< the other does not have the key, or, if !opened(), is not a Troupe process
    kDisagrees,   ///< the other has the key, but is not who it should be: see problem()
    kVersion,     ///< the other has the key and speaks another wire version: see problem()
    kTlsDiffers,  ///< the other has the key, and one of the two wants TLS: see problem()
  };

  /// `self.nonce` must be fresh random bytes. `join_key` is RunKey::Derive("join").
  static Handshake Initiate(const RunKey& join_key, const Opening& self);
  /// Of `self` counts: version, from, run, nonce, tls. A join is accepted from anybody, the rest
  /// from those that know the run.
  static Handshake Accept(const RunKey& join_key, const Opening& self);

  /// How many bytes it waits for: never read more, they belong to whoever uses the connection next.
  std::size_t wanted() const;
  /// At most wanted() bytes, in any pieces.
  void Receive(std::span<const std::byte> bytes);
  /// What is to be sent now.
  std::vector<std::byte> TakeOutput();

  Status status() const { return status_; }
  /// For kDisagrees, kVersion and kTlsDiffers; the same text on both sides.
  const std::string& problem() const { return problem_; }
  /// True once the other's Opening is here.
  bool opened() const { return other_.has_value(); }
  /// What the other said of itself. Only when opened; to be believed only when proven.
  const Opening& other() const { return *other_; }
  /// Of this connection only. Only when proven.
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
  std::vector<std::byte> input_;  ///< of the frame that is being received
  std::vector<std::byte> output_;
  std::optional<Opening> other_;
  std::array<std::byte, Opening::kBytes> other_bytes_{};
  std::optional<RunKey> session_;
};

/// "n2 wants TLS, n0 does not: set cluster.tls alike"
std::string TlsDifference(const std::string& wants, const std::string& does_not);

/// For tests and for the handshake itself.
std::vector<std::byte> EncodeOpening(const Opening& opening);

}  // namespace troupe
