// What the collectives of every kind of group make of their arguments: which of them are illegal,
// in whose words, and how much memory they mean.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

/// Zero bytes may come with null pointers, which memmove does not allow; an input may be its own
/// place in the output.
inline void Copy(void* to, const void* from, std::size_t num_bytes) {
  if (num_bytes > 0 && to != from) std::memmove(to, from, num_bytes);
}

/// Bytes of all pieces of an all-to-all.
inline std::size_t Total(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

/// Bytes of `count` elements; none of a count that is illegal.
inline std::size_t BytesOfCount(std::int64_t count, DType dtype) {
  return count < 0 ? 0 : static_cast<std::size_t>(count) * SizeOf(dtype);
}

/// Byte at which part `part` of `num_parts` of `num_bytes` begins: on a line of `line_bytes`, so
/// that no two members write one line; part `num_parts` begins at the end.
inline std::size_t BeginOfPart(std::size_t num_bytes, std::size_t line_bytes, std::size_t part,
                               std::size_t num_parts) {
  const std::size_t lines = (num_bytes + line_bytes - 1) / line_bytes;
  return std::min(num_bytes, lines * part / num_parts * line_bytes);
}

// Why a call cannot be made, empty if it can.

inline std::string RootError(int root, int num_members) {
  if (root >= 0 && root < num_members) return {};
  return "broadcast: expected a root in [0, " + std::to_string(num_members) + "), got " +
         std::to_string(root);
}

/// Of a call that reduces: LocalCall or GroupCall.
template <class Call>
std::string CountError(const Call& call) {
  if (call.count >= 0) return {};
  return ToString(call) + ": expected a count of at least 0";
}

/// Of an all-to-all: as many sizes as members.
inline std::string SizesError(std::size_t num_members, std::span<const std::size_t> send_bytes,
                              std::span<const std::size_t> receive_bytes) {
  const auto error = [&](const char* what, std::size_t got) {
    return std::string("all-to-all: expected ") + std::to_string(num_members) + " " + what +
           ", got " + std::to_string(got);
  };
  if (send_bytes.size() != num_members) return error("send sizes", send_bytes.size());
  if (receive_bytes.size() != num_members) return error("receive sizes", receive_bytes.size());
  return {};
}

}  // namespace troupe
