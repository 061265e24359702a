#include "transport/collective_arguments.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace troupe {

void Copy(void* to, const void* from, std::size_t num_bytes) {
  if (num_bytes > 0 && to != from) std::memmove(to, from, num_bytes);
}

std::size_t Total(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

std::size_t BytesOfCount(const GroupCall& call) {
  return call.count < 0 ? 0 : static_cast<std::size_t>(call.count) * SizeOf(call.dtype);
}

std::size_t InputBytes(const Collective& mine, int rank, int size) {
  const std::size_t num_bytes = BytesOfCount(mine.call);
  switch (mine.call.operation) {
    case Operation::kAllToAll:
      return Total(mine.send_bytes);
    case Operation::kReduceScatter:
      return num_bytes * static_cast<std::size_t>(size);
    case Operation::kBroadcast:
      return rank == mine.call.root ? num_bytes : 0;
    default:
      return num_bytes;
  }
}

std::size_t OutputBytes(const Collective& mine, int size) {
  if (mine.call.operation == Operation::kAllToAll) return Total(mine.receive_bytes);
  const bool all = mine.call.operation == Operation::kAllGather;
  return BytesOfCount(mine.call) * static_cast<std::size_t>(all ? size : 1);
}

std::size_t BeginOfPart(std::size_t num_bytes, std::size_t line_bytes, std::size_t part,
                        std::size_t num_parts) {
  const std::size_t lines = (num_bytes + line_bytes - 1) / line_bytes;
  return std::min(num_bytes, lines * part / num_parts * line_bytes);
}

const char* NameOf(Operation operation) {
  switch (operation) {
    case Operation::kBarrier:
      return "barrier";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kReduceScatter:
      return "reduce-scatter";
    case Operation::kAllToAll:
      return "all-to-all";
  }
  return "unknown operation";
}

std::string ToString(const GroupCall& call) {
  const std::string text = NameOf(call.operation);
  const std::string count = std::to_string(call.count);
  switch (call.operation) {
    case Operation::kBarrier:
    case Operation::kAllToAll:
      return text;
    case Operation::kBroadcast:
      return text + " of " + count + " bytes from " + MemberText(call.root);
    case Operation::kAllGather:
      return text + " of " + count + " bytes";
    default:
      return text + " of " + count + " " + ToString(call.dtype) +
             (call.op == ReduceOp::kSum ? " (sum)" : " (max)");
  }
}

std::string MemberText(int member) { return "member " + std::to_string(member); }

std::string ArgumentError(const Collective& mine, int size) {
  const GroupCall& call = mine.call;
  if (call.operation == Operation::kBroadcast && (call.root < 0 || call.root >= size)) {
    return "broadcast: expected a root in [0, " + std::to_string(size) + "), got " +
           std::to_string(call.root);
  }
  if (call.count < 0) return ToString(call) + ": expected a count of at least 0";
  if (call.operation != Operation::kAllToAll) return {};
  for (const auto& [name, sizes] : {std::pair(" send sizes, got ", mine.send_bytes),
                                    std::pair(" receive sizes, got ", mine.receive_bytes)}) {
    if (sizes.size() != static_cast<std::size_t>(size))
      return "all-to-all: expected " + std::to_string(size) + name + std::to_string(sizes.size());
  }
  return {};
}

std::string DifferenceError(int member, const GroupCall& call, int other,
                            const GroupCall& other_call) {
  return MemberText(member) + " called " + ToString(call) + ", " + MemberText(other) + " called " +
         ToString(other_call);
}

std::string PieceError(int from, std::size_t sent, int to, std::size_t expected) {
  if (sent == expected) return {};
  return "all-to-all: " + MemberText(from) + " sends " + std::to_string(sent) + " bytes to " +
         MemberText(to) + ", which expects " + std::to_string(expected);
}

}  // namespace troupe
