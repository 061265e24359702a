#include "transport/row_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>

namespace troupe {
namespace {

Shape WithRows(std::int64_t rows, const Shape& row_shape) {
  Shape shape{rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

void CheckParts(const ExchangePlan& plan, const std::vector<Buffer>& parts) {
  for (const Buffer& part : parts) {
    if (part.shape() != WithRows(part.num_rows(), plan.row_shape) || part.dtype() != plan.dtype) {
      throw std::invalid_argument("row exchange: expected rows of " + ToString(plan.row_shape) +
                                  " " + ToString(plan.dtype) + ", got " + ToString(part.shape()) +
                                  " " + ToString(part.dtype()));
    }
  }
}

/// The pointer to pass to a collective. Zero rows on a device have no device memory: their data()
/// is a host address, which a group would take for a call on host memory.
std::byte* MemoryOf(const Buffer& rows) {
  return rows.on_host() || rows.num_bytes() > 0 ? rows.data() : nullptr;
}

/// Applies the moves of this member as views of its own rows. Every row stays on its rank.
Buffer Rearranged(const ExchangePlan& plan, int self, const Buffer& rows, RowMemory& memory) {
  std::vector<Buffer> pieces;
  for (const RowMove& move : plan.moves) {
    if (move.destination != self) continue;
    pieces.push_back(rows.Rows(move.source_rows.begin, move.source_rows.end));
  }
  if (pieces.empty()) return memory.Allocate(WithRows(0, plan.row_shape), plan.dtype);
  return memory.Here(ConcatenateRows(pieces));
}

}  // namespace

bool ExchangePlan::local() const {
  return std::all_of(moves.begin(), moves.end(),
                     [](const RowMove& move) { return move.source == move.destination; });
}

Buffer ExchangeRows(Communicator& group, const ExchangePlan& plan, const std::vector<Buffer>& parts,
                    RowMemory& memory) {
  CheckParts(plan, parts);
  const int self = group.rank();
  const Buffer rows = parts.empty() ? memory.Allocate(WithRows(0, plan.row_shape), plan.dtype)
                                    : ConcatenateRows(parts);
  if (plan.local()) return Rearranged(plan, self, rows, memory);

  const auto row_bytes = static_cast<std::size_t>(NumElements(plan.row_shape)) * SizeOf(plan.dtype);
  const auto members = static_cast<std::size_t>(group.size());
  std::vector<std::size_t> send_bytes(members);
  std::vector<std::size_t> receive_bytes(members);
  std::vector<Buffer> outgoing;  // ordered by destination, as the moves are
  for (const RowMove& move : plan.moves) {
    const auto bytes = static_cast<std::size_t>(move.source_rows.size()) * row_bytes;
    if (move.source == self) {
      send_bytes[static_cast<std::size_t>(move.destination)] += bytes;
      outgoing.push_back(rows.Rows(move.source_rows.begin, move.source_rows.end));
    }
    if (move.destination == self) receive_bytes[static_cast<std::size_t>(move.source)] += bytes;
  }
  const Buffer packed = memory.Here(outgoing.empty() ? rows : ConcatenateRows(outgoing));

  const std::int64_t rows_out = plan.rows_out[static_cast<std::size_t>(self)];
  Buffer arrived = memory.Allocate(WithRows(rows_out, plan.row_shape), plan.dtype);
  group.AllToAll(MemoryOf(packed), send_bytes, MemoryOf(arrived), receive_bytes);

  // Pieces are now ordered by source, each source's in destination order; restore the plan's order.
  std::vector<std::size_t> next(members);
  for (std::size_t p = 1; p < members; ++p) next[p] = next[p - 1] + receive_bytes[p - 1];
  std::vector<Buffer> pieces;
  for (const RowMove& move : plan.moves) {
    if (move.destination != self) continue;
    std::size_t& at = next[static_cast<std::size_t>(move.source)];
    const auto begin = static_cast<std::int64_t>(row_bytes == 0 ? 0 : at / row_bytes);
    pieces.push_back(arrived.Rows(begin, begin + move.destination_rows.size()));
    at += static_cast<std::size_t>(move.destination_rows.size()) * row_bytes;
  }
  return pieces.empty() ? arrived : memory.Here(ConcatenateRows(pieces));
}

}  // namespace troupe
