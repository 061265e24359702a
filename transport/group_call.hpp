// The description of a call that members in different processes exchange before they trust its
// data.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "transport/communicator.hpp"
#include "transport/data_plane.hpp"
#include "transport/local_group.hpp"

namespace troupe {

/// One member's call in wire format: 32 bytes, without padding.
struct GroupCall {
  LocalOperation operation = LocalOperation::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  std::uint8_t unused = 0;
  std::int32_t root = 0;
  std::int64_t count = 0;           ///< as in the call: elements, or bytes if there is no dtype
  std::uint64_t send_bytes = 0;     ///< all-to-all: bytes from the sender of this to its receiver
  std::uint64_t receive_bytes = 0;  ///< all-to-all: bytes the sender expects from its receiver
};
static_assert(sizeof(GroupCall) == 32 && std::has_unique_object_representations_v<GroupCall>);

/// Whether both are the same operation on the same amount of data. Ignores the sizes of an
/// all-to-all.
bool SameCall(const GroupCall& a, const GroupCall& b);

/// "all-reduce".
std::string NameOf(const GroupCall& call);
/// "all-reduce of 12 float32 (sum)".
std::string ToString(const GroupCall& call);

/// A separate stream for the data of a call. Members whose calls differ, or that disagree on
/// `message_bytes`, never match each other's data, whatever its size.
std::uint64_t DataStream(std::uint64_t stream, const GroupCall& call, std::uint64_t message_bytes);

/// The sequence number of part `part` (below kMaxParts) of the group's operation `number` (below
/// 2^40).
inline constexpr std::uint64_t kMaxParts = std::uint64_t{1} << 24;
inline std::uint64_t SequenceOf(std::uint64_t number, std::uint64_t part) {
  return number * kMaxParts + part;
}

}  // namespace troupe
