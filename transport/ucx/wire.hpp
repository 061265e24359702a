// The wire format of the UCX data plane: little-endian, no padding, the MAC last. The keys are in
// transport/wire_key.hpp.
//
//   message   [a header under the tag of its label] the payload under another tag of its label
//   control   one active message: a request to send an allocation, a refusal, returned weight
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
  std::uint64_t counter = 0;  ///< number of the header, counted by the sender
  WireMac mac{};              ///< of the fields above and, with Verify::kPayload, the payload
};
static_assert(sizeof(MessageHeader) == 64 && std::is_trivially_copyable_v<MessageHeader> &&
              std::has_unique_object_representations_v<MessageHeader>);

enum class ControlKind : std::uint32_t {
  kHello = 1,    ///< opens the connection
  kPull = 2,     ///< send bytes [offset, offset + num_bytes) of `key` as message `number`
  kRefused = 3,  ///< `key` does not exist, message `number` will not follow
  kReturn = 4,   ///< returns weight `number` of allocation `key`
  kHelloAck = 5  ///< the hello has arrived
};

struct ControlMessage {
  std::uint32_t magic = kWireMagic;
  ControlKind kind = ControlKind::kHello;
  ProcessId from = 0;
  ProcessId to = 0;
  std::uint64_t counter = 0;  ///< number of the control message, counted by the sender
  std::uint64_t key = 0;
  std::int64_t offset = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t number = 0;
  WireMac mac{};
};
static_assert(sizeof(ControlMessage) == 72 && std::is_trivially_copyable_v<ControlMessage> &&
              std::has_unique_object_representations_v<ControlMessage>);

/// A process's address for the others: its salt and its UCX worker's address.
struct PlaneAddress {
  WireSalt salt{};
  std::vector<std::byte> worker;
};
std::vector<std::byte> Pack(const PlaneAddress& address);
/// Throws std::invalid_argument, beginning with `name`.
PlaneAddress Unpack(const std::vector<std::byte>& bytes, const std::string& name);

/// Accepts each counter once. Counters may arrive slightly out of order; one that is more than 63
/// below the newest counts as seen.
class ReplayWindow {
 public:
  /// Whether `counter` (from 1) is new; marks it as seen.
  bool Accept(std::uint64_t counter);

 private:
  std::uint64_t newest_ = 0;
  std::uint64_t seen_ = 0;  // bit i: newest_ - i
};

}  // namespace troupe
