// The part of a spanning group's all-to-all that stays in one process. Arguments and errors are
// those of Communicator::AllToAll; only pieces between members of this process are touched.
#pragma once

#include <cstddef>
#include <span>

#include "transport/spanning_group.hpp"

namespace troupe {

/// For a member alone in its process: copies its piece to itself.
void KeepPiece(const SpanningGroup& group, int rank, const std::byte* input,
               std::span<const std::size_t> send_bytes, std::byte* output,
               std::span<const std::size_t> receive_bytes);

/// For several members; `local` is this member's view of its process's group. Throws
/// std::invalid_argument on all of them, naming the pair, if sizes disagree.
void ExchangePieces(const SpanningGroup& group, Communicator& local, const std::byte* input,
                    std::span<const std::size_t> send_bytes, std::byte* output,
                    std::span<const std::size_t> receive_bytes);

}  // namespace troupe
