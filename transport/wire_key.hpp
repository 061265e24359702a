// What makes messages on the data plane a job's own: tags that nobody else can guess, and MACs that
// nobody else can make.
//
// Every sender has keys of its own, derived from the job's secret, the sender's number and a salt
// that it draws when it starts. So a counter is enough for nonces, and what an earlier attempt of
// the same job sent is a stranger's.
//   tag  SipHash-2-4 (64 bits) of (purpose, receiver, label)
//   MAC  GMAC (AES-256, 128 bits), nonce = purpose and counter
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/data_plane.hpp"

namespace troupe {

using WireSecret = std::array<std::byte, 32>;  ///< shared by the processes of a job
using WireSalt = std::array<std::byte, 16>;    ///< of one sender, public
using WireMac = std::array<std::byte, 16>;

/// How the receiver knows that it got the right bytes.
enum class Verify : std::uint8_t {
  kOff,     ///< by the tag alone
  kHeader,  ///< a signed header says what and how much
  kPayload  ///< and the signature covers every byte
};

/// The part of a message that its MAC, which is its last member, covers.
template <class T>
std::span<const std::byte> SignedPart(const T& message) {
  return std::as_bytes(std::span(&message, 1)).first(sizeof(T) - sizeof(WireMac));
}

/// From the system's random source. Throws std::runtime_error.
WireSalt DrawSalt();

/// What is tagged or signed: the same numbers under different purposes have nothing in common.
enum class WirePurpose : std::uint32_t { kPayload = 1, kHeader = 2, kControl = 3 };

/// The keys of one sender, as it and its receivers use them. Not thread-safe.
class WireKey {
 public:
  /// Throws std::runtime_error in the words of libcrypto.
  WireKey(const WireSecret& secret, const WireSalt& salt, ProcessId sender);
  WireKey(WireKey&&) noexcept;
  WireKey& operator=(WireKey&&) noexcept;
  ~WireKey();

  /// The tag of the message `label` to process `to`.
  std::uint64_t Tag(WirePurpose purpose, ProcessId to, Label label);
  /// Of `head` and `body` behind each other. `counter` must not repeat under one purpose.
  WireMac Sign(WirePurpose purpose, std::uint64_t counter, std::span<const std::byte> head,
               std::span<const std::byte> body);
  /// In time that does not depend on where the two MACs differ.
  bool Verify(const WireMac& mac, WirePurpose purpose, std::uint64_t counter,
              std::span<const std::byte> head, std::span<const std::byte> body);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace troupe
