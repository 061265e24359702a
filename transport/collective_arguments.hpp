// Checks the arguments of collectives and computes their sizes, for every kind of group.
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

/// Like memmove, but accepts null pointers for zero bytes and equal pointers.
inline void Copy(void* to, const void* from, std::size_t num_bytes) {
  if (num_bytes > 0 && to != from) std::memmove(to, from, num_bytes);
}

/// Bytes of all pieces of an all-to-all.
inline std::size_t Total(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

/// Bytes of `count` elements; 0 for a negative count.
inline std::size_t BytesOfCount(std::int64_t count, DType dtype) {
  return count < 0 ? 0 : static_cast<std::size_t>(count) * SizeOf(dtype);
}

/// The byte at which part `part` of `num_parts` of `num_bytes` begins. Parts begin at multiples of
/// `line_bytes`, so that no two members write the same line. Part `num_parts` begins at the end.
inline std::size_t BeginOfPart(std::size_t num_bytes, std::size_t line_bytes, std::size_t part,
                               std::size_t num_parts) {
  const std::size_t lines = (num_bytes + line_bytes - 1) / line_bytes;
  return std::min(num_bytes, lines * part / num_parts * line_bytes);
}

// The error of an illegal call, or an empty text.

inline std::string RootError(int root, int num_members) {
  if (root >= 0 && root < num_members) return {};
  return "broadcast: expected a root in [0, " + std::to_string(num_members) + "), got " +
         std::to_string(root);
}

/// For a call that reduces: LocalCall or GroupCall.
template <class Call>
std::string CountError(const Call& call) {
  if (call.count >= 0) return {};
  return ToString(call) + ": expected a count of at least 0";
}

/// For an all-to-all, which needs as many sizes as members.
inline std::string SizesError(std::size_t num_members, std::span<const std::size_t> send_bytes,
                              std::span<const std::size_t> receive_bytes) {
  const auto error = [&](const char* name, std::size_t got) {
    return std::string("all-to-all: expected ") + std::to_string(num_members) + " " + name +
           ", got " + std::to_string(got);
  };
  if (send_bytes.size() != num_members) return error("send sizes", send_bytes.size());
  if (receive_bytes.size() != num_members) return error("receive sizes", receive_bytes.size());
  return {};
}

}  // namespace troupe
