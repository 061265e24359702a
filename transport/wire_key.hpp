// Authenticates the messages of a job on the data plane: tags that others cannot guess and MACs
// that others cannot make.
//
// Every sender has separate keys, derived from the job's secret, the sender's number and a salt
// drawn at its start. So a counter suffices for nonces, and messages of an earlier attempt of the
// same job are rejected.
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

/// How a receiver verifies received bytes.
enum class Verify : std::uint8_t {
  kOff,     ///< by the tag alone
  kHeader,  ///< a signed header gives label and size
  kPayload  ///< the signature also covers every byte of the payload
};

/// The part of a message covered by its MAC, which must be the last member.
template <class T>
std::span<const std::byte> SignedPart(const T& message) {
  return std::as_bytes(std::span(&message, 1)).first(sizeof(T) - sizeof(WireMac));
}

/// From the system's random source. Throws std::runtime_error.
WireSalt DrawSalt();

/// The purpose of a tag or signature; separates equal numbers of different purposes.
enum class WirePurpose : std::uint32_t { kPayload = 1, kHeader = 2, kControl = 3 };

/// The keys of one sender, used by it and its receivers. Not thread-safe.
class WireKey {
 public:
  /// Throws std::runtime_error with libcrypto's error text.
  WireKey(const WireSecret& secret, const WireSalt& salt, ProcessId sender);
  WireKey(WireKey&&) noexcept;
  WireKey& operator=(WireKey&&) noexcept;
  ~WireKey();

  /// The tag of the message `label` to process `to`.
  std::uint64_t Tag(WirePurpose purpose, ProcessId to, Label label);
  /// Signs the concatenation of `head` and `body`. `counter` must not repeat for one purpose.
  WireMac Sign(WirePurpose purpose, std::uint64_t counter, std::span<const std::byte> head,
               std::span<const std::byte> body);
  /// Takes the same time wherever the two MACs differ.
  bool Verify(const WireMac& mac, WirePurpose purpose, std::uint64_t counter,
              std::span<const std::byte> head, std::span<const std::byte> body);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace troupe
