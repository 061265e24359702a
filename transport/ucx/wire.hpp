// What processes say to each other on the data plane, byte by byte: little-endian, no padding, the
// MAC last. docs: transport/wire_key.hpp has the keys.
//
//   message   [a header under the tag of its label] the payload under another tag of its label
//   control   one active message: a request to send an allocation, an answer that refuses, weight
//             that returns
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "transport/data_plane.hpp"
#include "transport/wire_key.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr std::uint32_t kWireMagic = 0x31505554;  ///< "TUP1"

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
