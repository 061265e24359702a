// What processes say to each other on the data plane, byte by byte: little-endian, no padding, the
// MAC last. docs: transport/ucx/wire_key.hpp has the keys.
//
//   message   [a header under the tag of its label] the payload under another tag of its label
//   control   one active message: a request to send an allocation, an answer that refuses, weight
//             that returns
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "transport/data_plane.hpp"
#include "transport/ucx/wire_key.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

/// The stream of pulled tensors: sequence = the receiver's own count.
inline constexpr std::uint64_t kPullStream = 0x70756c6c70756c6c;

inline constexpr std::uint32_t kWireMagic = 0x31505554;  ///< "TUP1"

/// How the receiver knows that it got the right bytes.
enum class Verify : std::uint8_t {
  kOff,     ///< by the tag alone
  kHeader,  ///< a signed header says what and how much
  kPayload  ///< and the signature covers every byte
};

struct MessageHeader {
  std::uint32_t magic = kWireMagic;
  Verify verify = Verify::kHeader;
  std::uint8_t reserved[3] = {};
  ProcessId from = 0;
  ProcessId to = 0;
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t counter = 0;  ///< of the sender's headers
  WireMac mac{};              ///< of the fields above and, with Verify::kPayload, the payload
};
static_assert(sizeof(MessageHeader) == 64 && std::is_trivially_copyable_v<MessageHeader> &&
              std::has_unique_object_representations_v<MessageHeader>);

enum class ControlKind : std::uint32_t {
  kHello = 1,    ///< opens the connection
  kPull = 2,     ///< send bytes [offset, offset + num_bytes) of `key` as message `number`
  kRefused = 3,  ///< `key` is not here, message `number` will not come
  kReturn = 4,   ///< weight `number` of `key` is back
  kWelcome = 5   ///< the hello is here
};

struct ControlMessage {
  std::uint32_t magic = kWireMagic;
  ControlKind kind = ControlKind::kHello;
  ProcessId from = 0;
  ProcessId to = 0;
  std::uint64_t counter = 0;  ///< of the sender's control messages
  std::uint64_t key = 0;
  std::int64_t offset = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t number = 0;
  WireMac mac{};
};
static_assert(sizeof(ControlMessage) == 72 && std::is_trivially_copyable_v<ControlMessage> &&
              std::has_unique_object_representations_v<ControlMessage>);

/// The part of a message that its MAC covers.
template <class T>
std::span<const std::byte> SignedPart(const T& message) {
  return std::as_bytes(std::span(&message, 1)).first(sizeof(T) - sizeof(WireMac));
}

/// What a process tells the others of itself: its salt and where UCX reaches it.
struct PlaneAddress {
  WireSalt salt{};
  std::vector<std::byte> worker;
};
std::vector<std::byte> Pack(const PlaneAddress& address);
/// Throws std::invalid_argument, beginning with `who`.
PlaneAddress Unpack(const std::vector<std::byte>& bytes, const std::string& who);

/// Counters in nearly their order, each once: what is older than 64 counts as seen.
class ReplayWindow {
 public:
  /// Whether `counter` (from 1) is new; then it is not new any more.
  bool Accept(std::uint64_t counter);

 private:
  std::uint64_t newest_ = 0;
  std::uint64_t seen_ = 0;  // bit i: newest_ - i
};

}  // namespace troupe
