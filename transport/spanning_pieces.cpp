#include "transport/spanning_pieces.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "transport/collective_arguments.hpp"

namespace troupe {
namespace {

using Sizes = std::span<const std::size_t>;

std::size_t OffsetOf(Sizes sizes, int member) {
  return Total(sizes.first(static_cast<std::size_t>(member)));
}

void CheckPiece(const SpanningGroup& group, int from, std::size_t sent, int to,
                std::size_t expected) {
  if (sent != expected)
    throw std::invalid_argument(group.Prefix() + "all-to-all: member " + std::to_string(from) +
                                " sends " + std::to_string(sent) + " bytes to member " +
                                std::to_string(to) + ", which expects " + std::to_string(expected));
}

/// `sends` and `receives` are this member's sizes for the members of its process.
void CheckPieces(const SpanningGroup& group, Communicator& local, Sizes sends, Sizes receives) {
  const std::vector<int>& mates = group.own().members;
  const std::size_t num_mates = mates.size();
  std::vector<std::size_t> own(sends.begin(), sends.end());
  own.insert(own.end(), receives.begin(), receives.end());
  std::vector<std::size_t> all(num_mates * own.size());  // [mate][to, from][mate]
  local.AllGather(own.data(), own.size() * sizeof(own[0]), all.data());
  for (std::size_t from = 0; from < num_mates; ++from)
    for (std::size_t to = 0; to < num_mates; ++to)
      CheckPiece(group, mates[from], all[from * own.size() + to], mates[to],
                 all[to * own.size() + num_mates + from]);
}

}  // namespace

void KeepPiece(const SpanningGroup& group, int rank, const std::byte* input, Sizes send_bytes,
               std::byte* output, Sizes receive_bytes) {
  const auto self = static_cast<std::size_t>(rank);
  CheckPiece(group, rank, send_bytes[self], rank, receive_bytes[self]);
  Copy(output + OffsetOf(receive_bytes, rank), input + OffsetOf(send_bytes, rank),
       send_bytes[self]);
}

void ExchangePieces(const SpanningGroup& group, Communicator& local, const std::byte* input,
                    Sizes send_bytes, std::byte* output, Sizes receive_bytes) {
  const std::vector<int>& mates = group.own().members;
  std::vector<std::size_t> sends;
  std::vector<std::size_t> receives;
  for (const int mate : mates) {
    sends.push_back(send_bytes[static_cast<std::size_t>(mate)]);
    receives.push_back(receive_bytes[static_cast<std::size_t>(mate)]);
  }
  CheckPieces(group, local, sends, receives);
  // Packed, since pieces for members in other processes are in between.
  const Buffer outgoing = Buffer::AllocateBytes(Total(sends));
  std::byte* packed = outgoing.data();
  for (std::size_t i = 0; i < mates.size(); packed += sends[i++])
    Copy(packed, input + OffsetOf(send_bytes, mates[i]), sends[i]);
  const Buffer incoming = Buffer::AllocateBytes(Total(receives));
  local.AllToAll(outgoing.data(), sends, incoming.data(), receives);
  const std::byte* piece = incoming.data();
  for (std::size_t i = 0; i < mates.size(); piece += receives[i++])
    Copy(output + OffsetOf(receive_bytes, mates[i]), piece, receives[i]);
}

}  // namespace troupe
