// Sizes, checks and error texts of the arguments of collectives, for every kind of group.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "transport/communicator.hpp"

namespace troupe {

/// Like memmove, but accepts null pointers for zero bytes and equal pointers.
void Copy(void* to, const void* from, std::size_t num_bytes);

/// Bytes of all pieces of an all-to-all.
std::size_t Total(std::span<const std::size_t> sizes);

/// Bytes of `call.count` elements; 0 for a negative count.
std::size_t BytesOfCount(const GroupCall& call);
/// The bytes that member `rank` of `size` reads at `mine.input`, and that it writes at
/// `mine.output`.
std::size_t InputBytes(const Collective& mine, int rank, int size);
std::size_t OutputBytes(const Collective& mine, int size);

/// The byte at which part `part` of `num_parts` of `num_bytes` begins. Parts begin at multiples of
/// `line_bytes`, so that no two members write the same line. Part `num_parts` begins at the end.
std::size_t BeginOfPart(std::size_t num_bytes, std::size_t line_bytes, std::size_t part,
                        std::size_t num_parts);

const char* NameOf(Operation operation);  ///< "all-reduce"
/// "all-reduce of 12 float32 (sum)".
std::string ToString(const GroupCall& call);
/// "member 3".
std::string MemberText(int member);

/// Why a call of a group of `size` is illegal, or "".
std::string ArgumentError(const Collective& mine, int size);
/// "member 0 called all-gather of 4 bytes, member 3 called barrier".
std::string DifferenceError(int member, const GroupCall& call, int other,
                            const GroupCall& other_call);
/// "all-to-all: member 0 sends 4 bytes to member 1, which expects 8", or "" if both sizes are
/// equal.
std::string PieceError(int from, std::size_t sent, int to, std::size_t expected);

}  // namespace troupe
